// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/analysis"
	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestListsOfEveryLengthDoNotDisplaceFrequentTexts(t *testing.T) {
	var p plans
	s := &sharding.Snapshot{}
	made := planOf("SELECT 1", s)
	const often = "SELECT * FROM orders WHERE user_id = ?"
	p.keep(s, often, made)
	var sent, most int
	for _, table := range []string{"orders", "items", "carts"} {
		for n := range 3000 {
			text := "SELECT * FROM " + table + " WHERE user_id IN (?" + strings.Repeat(",?", n) + ")"
			if p.find(s, text) != nil {
				t.Fatalf("%.40s… of %d was never sent before", text, n)
			}
			p.keep(s, text, made)
			if p.find(s, text) == nil {
				t.Fatalf("%.40s… of %d is not kept", text, n)
			}
			if p.find(s, often) == nil {
				t.Fatalf("%s is gone after lists of %d", often, n)
			}
			sent += len(text)
			g := p.cached.Load()
			most = max(most, textsOf(g.young)+textsOf(g.old))
		}
	}
	if most > 2*maxYoung || sent < 10*most {
		t.Errorf("%d bytes of texts are kept of %d", most, sent)
	}
	if p.keep(s, strings.Repeat("x", maxText+1), made); p.find(s, strings.Repeat("x", maxText+1)) != nil {
		t.Error("a text above the limit is kept")
	}
	if p.find(&sharding.Snapshot{}, often) != nil {
		t.Error("a plan of another snapshot is found")
	}
}

// planOf returns a plan without the columns of tables.
func planOf(text string, s *sharding.Snapshot) *planned {
	return &planned{Plan: plan.Of(sqlparse.Parse(text, sqlparse.Dialect{Family: sqlparse.MySQL}), s, analysis.Options{Quote: dialect.MySQL{}.Quote})}
}

// A plan caches a text for each of its shards, of which there may be a thousand times as many as texts.
func TestTheCacheOfPlansIsBoundedHoweverManyShardsThereAre(t *testing.T) {
	const shards = 1024
	m, err := sharding.Spread([]string{"a"}, shards, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": sql.OpenDB(unusable{})}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(shards), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	var p plans
	s := router.Snapshot()
	made := 0
	for i := range 60 {
		text := fmt.Sprintf("SELECT id FROM orders WHERE user_id = ? /* %s */ AND id > %d", strings.Repeat("x", 2000), i)
		for key := range int64(shards) {
			of := p.find(s, text)
			if of == nil {
				of = planOf(text, s)
				p.keep(s, text, of)
				made++
			}
			if to, err := of.Bind([]any{key}, sharding.Hint{}); err != nil || to.Target.Table != fmt.Sprint("orders_", key) {
				t.Fatal(to, err)
			}
		}
	}
	var kept atomic.Int64
	g := p.cached.Load()
	for _, texts := range []*sync.Map{g.young, g.old} {
		for _, of := range texts.Range {
			plan.Count(of.(*planned).Plan, &kept)
		}
	}
	if n := kept.Load(); n < maxRouted || n > 5*maxRouted/2 || made > 65 {
		t.Errorf("%d bytes are kept of %d plans", n, made)
	}
}

// All processors look up the texts that a program sends often. With a lock for readers they would wait for each other.
func BenchmarkFindingAPlan(b *testing.B) {
	var p plans
	s := &sharding.Snapshot{}
	const often = "SELECT id, user_id, note FROM orders WHERE user_id = ? AND id = ?"
	p.keep(s, often, planOf(often, s))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if p.find(s, often) == nil {
				b.Error("its plan is not kept")
				return
			}
		}
	})
}

func textsOf(of *sync.Map) (bytes int) {
	for text := range of.Range {
		bytes += len(text.(string))
	}
	return bytes
}
