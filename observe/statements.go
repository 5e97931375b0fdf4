// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Statements counts the statements of routers by table, kind and outcome, and how often their
// replicas could not be reached. The zero Statements is ready to use. It is safe for concurrent use.
type Statements struct {
	mu    sync.RWMutex
	count map[series]*counts
	downs map[replica]int64
}

// replica is a place in shardsql.Config.Replicas.
type replica struct {
	database string
	index    int
}

// series is a set of labels under which statements are counted.
type series struct{ table, kind, outcome string }

// Outcomes of statements that were not refused.
const (
	succeeded = "ok"
	failed    = "error"
	cancelled = "cancelled"
)

// bounds are the upper bounds of the histogram of durations, in seconds: 100 µs to 10 s.
var bounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// counts are the counters of a series.
type counts struct {
	durations     [len(bounds) + 1]atomic.Uint64 // the index is that of the first bound that is not lower
	nanos         atomic.Int64
	rows, retries atomic.Int64
	shards        atomic.Int64
}

// Observer returns an observer that counts statements, for shardsql.Config.Observer and the same
// field in gormplugin and sqlxhook.
func (s *Statements) Observer() shardsql.Observer {
	return shardsql.Observer{Statement: s.Observe, ReplicaDown: s.ReplicaDown}
}

// ReplicaDown counts a replica that could not be reached. An observer that does more than count calls it.
func (s *Statements) ReplicaDown(_ context.Context, database string, index int, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.downs == nil {
		s.downs = map[replica]int64{}
	}
	s.downs[replica{database, index}]++
}

// Observe counts a statement. An observer that does more than count calls it.
func (s *Statements) Observe(ctx context.Context, of shardsql.Statement) {
	k := series{of.Table, string(of.Kind), Outcome(ctx, of)}
	if c := s.of(k); c != nil {
		c.add(of)
		return
	}
	s.begin(k, of)
}

// begin counts the first statement of a series, which is not gathered without one: the mean of no
// statements is no number.
func (s *Statements) begin(k series, of shardsql.Statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[series]*counts{}
	}
	if s.count[k] == nil {
		s.count[k] = new(counts)
	}
	s.count[k].add(of)
}

func (c *counts) add(of shardsql.Statement) {
	bucket, _ := slices.BinarySearch(bounds[:], of.Took.Seconds())
	c.durations[bucket].Add(1)
	c.nanos.Add(int64(of.Took))
	c.rows.Add(of.Rows)
	c.retries.Add(int64(of.Retries))
	c.shards.Add(int64(len(of.Targets)))
}

// of returns the counters of a series, nil before its first statement.
func (s *Statements) of(k series) *counts {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count[k]
}

// Outcome returns the outcome of a statement with this context in one word: "ok", "cancelled" when its context ended,
// the reason of a refusal ("missing_key", "cross_database", "unmergeable" and so on, after the
// errors of package sharding), or "error". A deadline that is exceeded while the context lasts is an
// "error": it is that of the driver, which gave up connecting to a server.
func Outcome(ctx context.Context, of shardsql.Statement) string {
	switch {
	case of.Err == nil:
		return succeeded
	case errors.Is(of.Err, context.Canceled), ctx.Err() != nil && errors.Is(of.Err, context.DeadlineExceeded):
		return cancelled
	case of.Kind != shardsql.Refused, errors.Is(of.Err, context.DeadlineExceeded):
		return failed
	}
	for _, r := range reasons {
		if errors.Is(of.Err, r.err) {
			return r.word
		}
	}
	return "refused"
}

// reasons are the outcomes of refused statements.
var reasons = []struct {
	err  error
	word string
}{
	{sharding.ErrMissingKey, "missing_key"},
	{sharding.ErrKeyType, "key_type"},
	{sharding.ErrNoSlot, "no_slot"},
	{sharding.ErrTooManyShards, "too_many_shards"},
	{sharding.ErrCrossShard, "cross_shard"},
	{sharding.ErrCrossDatabase, "cross_database"},
	{sharding.ErrCopies, "copies"},
	{sharding.ErrUnmergeable, "unmergeable"},
	{sharding.ErrKeyChange, "key_change"},
	{sharding.ErrMisplaced, "misplaced"},
	{sharding.ErrRawTable, "raw_table"},
	{sharding.ErrSettings, "settings"},
	{sharding.ErrSameDatabase, "same_database"},
	{sharding.ErrSlotMoving, "slot_moving"},
	{sharding.ErrStaleMap, "stale_map"},
	{sharding.ErrRouteMoved, "route_moved"},
	{sharding.ErrRouteClosed, "route_closed"},
	{sharding.ErrRouteUnread, "route_unread"},
	{sharding.ErrNotNumbered, "not_numbered"},
	{sharding.ErrUnknownTable, "unknown_table"},
}

// statementLabels are the labels of every metric of statements.
var statementLabels = []string{"kind", "outcome", "table"}

var statementMetrics = []struct {
	name, help string
	value      func(c *counts) int64
}{
	{"shardid_statement_rows_total", "Rows that statements read or changed.", func(c *counts) int64 { return c.rows.Load() }},
	{"shardid_statement_shards_total", "Shards that statements were sent to.", func(c *counts) int64 { return c.shards.Load() }},
	{"shardid_statement_retries_total", "How often statements were planned again because their table had moved.", func(c *counts) int64 { return c.retries.Load() }},
}

// StatementDuration is the name of the histogram of the durations of statements. Its labels are
// kind, outcome and table.
const StatementDuration = "shardid_statement_duration_seconds"

// families returns the metrics of statements, sorted by their labels.
func (s *Statements) families() []Family {
	all := []Family{{
		Name: StatementDuration, Help: "Durations of statements, those of queries until their rows were closed; the outcome of a refused statement is the reason.",
		Type: Histogram, Labels: statementLabels,
	}}
	for _, m := range statementMetrics {
		all = append(all, Family{Name: m.name, Help: m.help, Type: Counter, Labels: statementLabels})
	}
	for _, k := range s.series() {
		c, values := s.of(k), []string{k.kind, k.outcome, k.table}
		all[0].Samples = append(all[0].Samples, c.histogram(values))
		for i, m := range statementMetrics {
			all[i+1].Samples = append(all[i+1].Samples, Sample{Values: values, Value: float64(m.value(c))})
		}
	}
	return append(all, s.replicas())
}

// replicas returns the metric of replicas, sorted by its labels.
func (s *Statements) replicas() Family {
	f := Family{
		Name: "shardid_replica_down_total", Help: "How often a replica could not be reached, and was left out for five seconds.",
		Type: Counter, Labels: []string{"database", "replica"},
	}
	if s == nil {
		return f
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range slices.SortedFunc(maps.Keys(s.downs), func(a, b replica) int { return cmp.Or(strings.Compare(a.database, b.database), a.index-b.index) }) {
		f.Samples = append(f.Samples, Sample{Values: []string{r.database, strconv.Itoa(r.index)}, Value: float64(s.downs[r])})
	}
	return f
}

func (s *Statements) series() (all []series) {
	if s == nil {
		return nil
	}
	s.mu.RLock()
	for k := range s.count {
		all = append(all, k)
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b series) int {
		return cmp.Or(strings.Compare(a.table, b.table), strings.Compare(a.kind, b.kind), strings.Compare(a.outcome, b.outcome))
	})
	return all
}

func (c *counts) histogram(values []string) Sample {
	h := Sample{Values: values, Value: time.Duration(c.nanos.Load()).Seconds()}
	for i := range c.durations {
		h.Count += c.durations[i].Load()
		bound := math.Inf(1)
		if i < len(bounds) {
			bound = bounds[i]
		}
		h.Buckets = append(h.Buckets, Bucket{bound, h.Count})
	}
	return h
}
