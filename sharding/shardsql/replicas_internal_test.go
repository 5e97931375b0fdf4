// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/sharding"
)

func TestACopyThatCouldNotBeReachedIsAskedAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pools := []*sql.DB{{}, {}}
		copies := newReplicas(Config{Replicas: map[string][]*sql.DB{"b": pools}})
		down, refused := []string{}, errors.New("connection refused")
		observer := Observer{ReplicaDown: func(_ context.Context, database string, replica int, err error) {
			down = append(down, fmt.Sprint(database, replica, " ", err))
		}}
		copies.leaveOut(t.Context(), pools[0], refused, observer)
		for range 4 {
			if copies.pick("b") != pools[1] {
				t.Error("a copy is asked that rests")
			}
		}
		copies.leaveOut(t.Context(), pools[1], refused, observer)
		copies.leaveOut(t.Context(), &sql.DB{}, refused, observer) // no copy
		if fmt.Sprint(down) != "[b0 connection refused b1 connection refused]" {
			t.Errorf("the observer is told %q", down)
		}
		if copies.pick("b") != nil {
			t.Error("both copies rest, and one is asked")
		}
		time.Sleep(restOfCopy)
		if first, second := copies.pick("b"), copies.pick("b"); first == nil || second == nil || first == second {
			t.Error("a copy still rests")
		}
	})
}

func TestACopyIsAskedOncePerMapWhetherItHasTheMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, lags := 0, true
		copied := newReplicas(Config{Replicas: map[string][]*sql.DB{"b": {{}}}})["b"]
		version := int64(1)
		has := func(table string) bool {
			t.Helper()
			of := &sharding.Table{Name: table, Map: sharding.Map{}.At(version)}
			has, err := copied.moves[0].has(of, func() (bool, error) { asked++; return !lags, nil })
			if err != nil {
				t.Error(err)
			}
			return has
		}
		for range 3 {
			if has("orders") {
				t.Error("a copy that lags has the moves")
			}
		}
		lags = false
		time.Sleep(restOfMoves)
		for range 3 {
			if !has("orders") || !has("items") {
				t.Error("a copy without lag lacks the moves")
			}
		}
		version = 2
		for range 2 {
			if !has("orders") {
				t.Error("a copy without lag lacks the next moves")
			}
		}
		if asked != 4 {
			t.Errorf("the copy was asked %d times", asked)
		}
	})
}

func TestErrorsNameTheReplica(t *testing.T) {
	m, err := sharding.MapOf(sharding.Target{DB: "b", Table: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"b": {}}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(1), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	pools := []*sql.DB{{}, {}}
	d := &database{router: router, home: &sql.DB{}, replicas: newReplicas(Config{Replicas: map[string][]*sql.DB{"b": pools}})}
	if name := d.nameOf(pools[1]); name != "replica 1 of database b" {
		t.Error(name)
	}
}
