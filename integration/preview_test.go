// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/changes"
	"github.com/shardid/shardid/internal/testkit/selects"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// On MySQL and MariaDB, a strict source of a migration refuses exactly the statements that
// the shards refuse, although the shards' columns cannot be read yet.
func TestWhatAPreviewRefusesIsWhatShardsRefuse(t *testing.T) {
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			dbs := sharding.DBs{"source": open(t, "previewed"), "a": open(t, "previewed_a"), "b": open(t, "previewed_b")}
			m := layouts(t)["numbered"]
			router, err := sharding.New(dbs,
				sharding.Migration{Source: "source", Tables: map[string]string{"orders": ""}, Strict: true},
				sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: m, Also: []sharding.Alt{{Column: "id", Rule: sharding.Mod(4), From: 100}}})
			if err != nil {
				t.Fatal(err)
			}
			database.Exec(t, dbs["source"], "CREATE TABLE orders"+twinColumns)
			database.Exec(t, dbs["source"], "CREATE TABLE shardid_route (tbl VARCHAR(64) PRIMARY KEY, job VARCHAR(64), epoch BIGINT, route VARCHAR(20))")
			refused := func() map[string]error {
				routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["source"]})
				defer func() { _ = routed.Close() }()
				return refusals(t, routed)
			}
			early := refused()
			for _, at := range m.Targets() {
				database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+twinColumns)
			}
			database.Exec(t, dbs["source"], "RENAME TABLE orders TO orders_old")
			database.Exec(t, dbs["source"], "INSERT INTO shardid_route VALUES ('orders', 'autumn', 1, 'shards')")
			late, n := refused(), 0
			for text, before := range early {
				if before != nil {
					n++
				}
				if after := late[text]; fmt.Sprint(before) != fmt.Sprint(after) {
					t.Errorf("%s:\nbefore the switch %v\nand after it %v", text, before, after)
				}
			}
			if t.Logf("%d of %d are refused", n, len(early)); n < len(early)/10 || n > len(early)*9/10 {
				t.Error("too few, or too many")
			}
		})
	}
}

// refusals sends random queries and writes, and returns why they are refused, nil of one
// that is not. What shards have to be asked about their rows for is not known before.
func refusals(t *testing.T, routed *sql.DB) map[string]error {
	t.Helper()
	all := map[string]error{}
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 9))
		m := changes.Maker{Rand: random}
		s := m.Statement()
		var err error
		if seed%2 == 0 {
			query := selects.Random(random, "YEAR(at)", "DATE_FORMAT(at, '%i:%s')", "amount * 2")
			if seed%6 == 0 {
				query.Text += " FOR UPDATE"
			}
			s = changes.Statement{Text: query.Text, Args: query.Args}
			_, err = query.Answer(t.Context(), routed, func(_, text string) string { return text })
		} else {
			_, err = s.Run(t.Context(), routed)
		}
		var refusal *sharding.RouteError
		if !errors.As(err, &refusal) || errors.Is(err, sharding.ErrKeyChange) {
			refusal = &sharding.RouteError{}
		}
		all[fmt.Sprint(s.Text, s.Args)] = sentinel(refusal.Err)
	}
	return all
}

// sentinel is the error of package sharding that another one wraps, without the names of
// databases, which come in any order.
func sentinel(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}
