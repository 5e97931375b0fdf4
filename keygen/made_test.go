// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/objectid"
	"github.com/shardid/shardid/keygen/redisgen"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/ticket"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// generator is the set of methods that all generators of int64 have.
type generator interface {
	keygen.Generator[int64]
	keygen.Reporter
	Close() error
}

// A program can create such a value without New.
func TestGeneratorsThatNewHasNotMadeRefuseEveryKey(t *testing.T) {
	for name, g := range map[string]generator{
		"snowflake": new(snowflake.Generator), "segment": new(segment.Generator),
		"cached": new(cached.Generator), "ticket": new(ticket.Generator),
	} {
		t.Run(name, func(t *testing.T) {
			if id, err := g.Next(t.Context()); id != 0 || !errors.Is(err, keygen.ErrUnknownGenerator) {
				t.Errorf("Next: %d, %v", id, err)
			}
			if err := keygen.Fill(t.Context(), g, make([]int64, 3)); !errors.Is(err, keygen.ErrUnknownGenerator) {
				t.Errorf("Fill: %v", err)
			}
			if err := g.Stats().LastError; !errors.Is(err, keygen.ErrUnknownGenerator) {
				t.Errorf("Stats: %v", err)
			}
			for range 2 {
				if err := g.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
		})
	}
	if _, err := new(objectid.Generator).Next(t.Context()); !errors.Is(err, keygen.ErrUnknownGenerator) {
		t.Errorf("objectid: %v", err)
	}
}

func TestTheOtherMethodsOfGeneratorsThatNewHasNotMadeDoNotPanic(t *testing.T) {
	var flakes snowflake.Generator
	if err := flakes.FillIn(t.Context(), make([]int64, 1), []int64{0}); err == nil {
		t.Error("it gave an id in a bucket")
	}
	if _, _, err := flakes.Range(time.Now(), time.Now()); !errors.Is(err, keygen.ErrLayout) {
		t.Error(err)
	}
	var ring cached.Generator
	if r := ring.Ring(); r != (cached.Ring{}) {
		t.Errorf("%+v", r)
	}
	if flakes.Layout().Validate() == nil || ring.Layout().Validate() == nil {
		t.Error("a layout that nobody gave is valid")
	}
	var segments segment.Generator
	if u := segments.Usage(); u != (segment.Usage{}) {
		t.Errorf("%+v", u)
	}
}

// Sources and assigners that no constructor has made fail, and say so.
func TestSourcesAndAssignersThatNobodyHasMadeAreErrors(t *testing.T) {
	var store sqlstore.Store
	for name, source := range map[string]keygen.Source{
		"Tag": store.Tag("orders"), "GuardedTag": store.GuardedTag("orders"), "Table": new(ticket.Table),
		"redisgen": new(redisgen.Counter), "zookeeper": new(zookeeper.Counter),
	} {
		if span, err := source.Reserve(t.Context(), 1); err == nil {
			t.Errorf("%s: %+v", name, span)
		}
	}
	for name, assigner := range map[string]keygen.Assigner{
		"WorkerNode": store.WorkerNode("h", "1"), "GuardedWorkerNode": store.GuardedWorkerNode("h", "1"),
		"Leased": new(workerid.Leased), "Workers": new(zookeeper.Workers),
	} {
		if lease, err := assigner.Acquire(t.Context(), keygen.Twitter()); err == nil {
			t.Errorf("%s: %+v", name, lease)
		}
	}
	for name, texts := range map[string]keygen.Generator[string]{"Texts": new(redisgen.Texts)} {
		if text, err := texts.Next(t.Context()); err == nil {
			t.Errorf("%s: %q", name, text)
		}
	}
	if id, err := new(redisgen.Serials).Next(t.Context()); err == nil {
		t.Errorf("Serials: %d", id)
	}
	for name, ledger := range map[string]workerid.Ledger{"sqlstore": store.Leases(), "zookeeper": new(zookeeper.Leases)} {
		claim := workerid.Claim{Namespace: "n", Owner: "o", Layout: keygen.Twitter(), Term: time.Second}
		_, taken := ledger.Take(t.Context(), claim)
		_, renewed := ledger.Renew(t.Context(), claim, workerid.Entry{})
		if taken == nil || renewed == nil || ledger.Return(t.Context(), claim, workerid.Entry{}, 1) == nil {
			t.Errorf("%s: %v, %v", name, taken, renewed)
		}
	}
}
