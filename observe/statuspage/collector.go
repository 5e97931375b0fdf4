// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/sharding"
)

// question holds the parameters of a request.
type question struct {
	countRows     bool
	id, generator string
}

// collector collects one Status.
type collector struct {
	Config

	generators []observe.Generator
	errors     []string
}

// mostRows is the largest number of tags, and of leases, that the page lists.
const mostRows = 1000

func (c *collector) collect(ctx context.Context, q question) Status {
	s := Status{Time: time.Now().UTC(), Health: c.Service.Health(ctx), Generators: []Generator{}, Statements: c.statements()}
	for _, g := range c.generators {
		s.Generators = append(s.Generators, generator(g))
	}
	s.Tags, s.Leases = c.tags(ctx), c.leases(ctx)
	s.Tables = c.tables()
	if q.countRows {
		c.count(ctx, s.Tables)
	}
	s.Migrations = c.migrations(ctx)
	if q.id != "" {
		s.Decoded = c.decode(q)
	}
	s.Errors = append([]string{}, c.errors...)
	return s
}

// failed records a part of the page that cannot be shown.
func (c *collector) failed(what string, err error) {
	c.errors = append(c.errors, what+": "+err.Error())
}

func generator(g observe.Generator) Generator {
	of := Generator{
		Name: g.Name, Issued: g.Issued, Waits: g.Waits, Failures: g.Failures, Rate: g.Rate, Remaining: g.Remaining,
		LeasedUntil: known(g.LeasedUntil), LayoutEnds: known(g.Expires), Reservations: g.Reservations, Failed: g.FailedReserves,
	}
	if left := g.Left(); !math.IsInf(left, 1) {
		of.Left = &left
	}
	if !g.Expires.IsZero() {
		of.Worker = &g.Worker
	}
	if g.Layout != nil {
		of.Layout = g.Layout.Fingerprint()
	}
	if g.LastError != nil {
		of.LastError = g.LastError.Error()
	}
	return of
}

// known returns nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// statements reads the histogram of the service.
func (c *collector) statements() []Statement {
	all := []Statement{}
	for _, f := range c.Service.Gather() {
		if f.Name != observe.StatementDuration {
			continue
		}
		for _, s := range f.Samples {
			of := Statement{Count: s.Count, Mean: s.Value / float64(s.Count)}
			for i, label := range f.Labels {
				*map[string]*string{"table": &of.Table, "kind": &of.Kind, "outcome": &of.Outcome}[label] = s.Values[i]
			}
			all = append(all, of)
		}
	}
	return all
}

func (c *collector) tags(ctx context.Context) []Tag {
	all := []Tag{}
	if c.Store == nil {
		return all
	}
	rows, err := c.Store.TagRows(ctx, mostRows)
	if err != nil {
		c.failed("tags", err)
	}
	for _, r := range rows {
		all = append(all, Tag{r.Tag, r.Next, r.Step, r.Unchanged.Seconds()})
	}
	return all
}

func (c *collector) leases(ctx context.Context) []Lease {
	all := []Lease{}
	if c.Store == nil {
		return all
	}
	rows, err := c.Store.LeaseRows(ctx, mostRows)
	if err != nil {
		c.failed("worker ids", err)
	}
	for _, r := range rows {
		all = append(all, Lease{r.Namespace, r.Layout, r.Worker, r.Holder, r.Held, r.Left.Seconds(), r.Generation})
	}
	return all
}

// tables returns the shards and slots of each table.
func (c *collector) tables() []Table {
	all := []Table{}
	if c.Service.Router() == nil {
		return all
	}
	snapshot := c.Service.Router().Snapshot()
	for _, t := range snapshot.Tables() {
		of := Table{Name: t.Name, Key: t.Key, Slots: t.Rule.Slots(), Shards: []Shard{}}
		if o := t.Origin(); o != nil {
			of.Source = o.Target.String()
		} else {
			of.Shards = shards(t)
		}
		all = append(all, of)
	}
	return all
}

func shards(t sharding.Table) []Shard {
	all := []Shard{}
	index := map[sharding.Target]int{}
	for n := range t.Rule.Slots() {
		at, is := t.Map.Target(sharding.Slot(n))
		if !is {
			continue
		}
		i, seen := index[at]
		if !seen {
			i = len(all)
			index[at] = i
			all = append(all, Shard{Database: at.DB, Table: at.Table})
		}
		all[i].hold(n)
	}
	return all
}

// count estimates the rows of the shards. It queries the databases in parallel.
func (c *collector) count(ctx context.Context, tables []Table) {
	byDatabase := map[string][]*Shard{}
	for i := range tables {
		for j := range tables[i].Shards {
			s := &tables[i].Shards[j]
			byDatabase[s.Database] = append(byDatabase[s.Database], s)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(byDatabase)) {
		all.Go(func() {
			if err := c.countIn(ctx, name, byDatabase[name]); err != nil {
				mu.Lock()
				defer mu.Unlock()
				c.failed("rows of database "+name, err)
			}
		})
	}
	all.Wait()
	slices.Sort(c.errors)
}

func (c *collector) countIn(ctx context.Context, database string, shards []*Shard) error {
	db := c.Service.Router().DB(database)
	server, err := dialect.Identify(ctx, db)
	if err != nil {
		return err
	}
	return dialect.WithStatistics(ctx, db, server, func(on dialect.Querier) error {
		for _, s := range shards {
			rows, err := dialect.EstimateRows(ctx, on, server, s.Table)
			if err != nil {
				return err
			}
			s.Rows = &rows
		}
		return nil
	})
}

func (c *collector) migrations(ctx context.Context) []Job {
	all := []Job{}
	for _, name := range slices.Sorted(maps.Keys(c.Migrations)) {
		job := Job{Name: name}
		if status, err := c.Migrations[name].Status(ctx); err != nil {
			job.Error = err.Error()
		} else {
			job.Status = &status
		}
		all = append(all, job)
	}
	return all
}

// decode splits an id into its fields by the layout of the named generator, or of the first
// generator with a layout.
func (c *collector) decode(q question) *Decoded {
	d := &Decoded{ID: q.id}
	id, err := strconv.ParseInt(q.id, 10, 64)
	if err != nil || id < 0 {
		d.Error = fmt.Sprintf("%q is no id; an id is a decimal number from 0 to %d", q.id, int64(math.MaxInt64))
		return d
	}
	for _, g := range c.generators {
		if g.Layout == nil || q.generator != "" && g.Name != q.generator {
			continue
		}
		d.Generator = g.Name
		if d.Parts, err = parts(*g.Layout, id); err != nil {
			d.Error = err.Error()
		}
		return d
	}
	d.Error = "no generator of the service has a layout"
	if q.generator != "" {
		d.Error = fmt.Sprintf("no generator %q of the service has a layout", q.generator)
	}
	return d
}

func parts(l keygen.Layout, id int64) (*keygen.Parts, error) {
	p, err := l.Parse(id)
	if err != nil {
		return nil, err
	}
	return &p, nil
}
