// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

func TestListsOfEveryLengthDoNotDisplaceFrequentTexts(t *testing.T) {
	var p plans
	s := &sharding.Snapshot{}
	const often = "SELECT * FROM orders WHERE user_id = ?"
	p.keep(s, often, &planned{Plan: &plan.Plan{}})
	var sent, most int
	for _, table := range []string{"orders", "items", "carts"} {
		for n := range 3000 {
			text := "SELECT * FROM " + table + " WHERE user_id IN (?" + strings.Repeat(",?", n) + ")"
			if p.find(s, text) != nil {
				t.Fatalf("%.40s… of %d was never sent before", text, n)
			}
			p.keep(s, text, &planned{Plan: &plan.Plan{}})
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
	if p.keep(s, strings.Repeat("x", maxText+1), &planned{Plan: &plan.Plan{}}); p.find(s, strings.Repeat("x", maxText+1)) != nil {
		t.Error("a text above the limit is kept")
	}
	if p.find(&sharding.Snapshot{}, often) != nil {
		t.Error("a plan of another snapshot is found")
	}
}

// All processors look up the texts that a program sends often. With a lock for readers they would wait for each other.
func BenchmarkFindingAPlan(b *testing.B) {
	var p plans
	s := &sharding.Snapshot{}
	const often = "SELECT id, user_id, note FROM orders WHERE user_id = ? AND id = ?"
	p.keep(s, often, &planned{Plan: &plan.Plan{}})
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
