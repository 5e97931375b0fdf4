// SPDX-License-Identifier: Apache-2.0

package lookups

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/owner"
)

// mostExamples is the largest number of examples.
const mostExamples = 5

// Report is the result of a comparison of a lookup table with the shards.
type Report struct {
	Rows    int64 // values with their keys, on all shards
	Entries int64 // in the lookup table
	// Missing are rows without an entry, which cannot be found by the column. They exist only if a
	// program writes that does not know the lookup, or that bypasses package shardsql; if the lookup
	// table has lost entries; or if a transaction was broken off during COMMIT in the mode
	// [sharding.BestEffort] and the lookup table is sharded. Rows whose value another row has are among them.
	Missing int64
	// LeftOver are entries without a row. They do no harm.
	LeftOver int64
	// Removed are those of them that Tidy has deleted.
	Removed  int64
	Examples []string // of missing rows
	// Duplicates are the owners of each value of a unique lookup that several rows have, for 100
	// values at most. The owner that has the entry comes first.
	Duplicates [][]Owner `json:",omitempty"` //nolint:tagliatelle // its neighbours have no tags
}

// ErrMissing: rows have no entry in their lookup table.
var ErrMissing = errors.New("rows are missing in the lookup table")

// Verify compares a lookup table with all rows of the shards, while applications write. It writes
// nothing. If rows have no entry, the error wraps [ErrMissing], or [ErrDuplicates] if all of them have a value
// whose entry belongs to another row. The Report is nevertheless complete.
func Verify(ctx context.Context, c Config) (Report, error) {
	return c.compare(ctx, nil)
}

// Tidy is [Verify], and also deletes entries without a row.
func Tidy(ctx context.Context, c Config) (Report, error) {
	return c.compare(ctx, owner.Release)
}

func (c Config) compare(ctx context.Context, remove func(context.Context, owner.Table, owner.Entry) (bool, error)) (r Report, err error) {
	p, err := c.openMade(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return p.verify(ctx, remove)
}

func (p *pass) verify(ctx context.Context, remove func(context.Context, owner.Table, owner.Entry) (bool, error)) (r Report, err error) {
	var twice []owner.Entry
	for _, at := range p.table.Map.Targets() {
		some, err := p.compareRows(ctx, at, &r)
		if err != nil {
			return r, fmt.Errorf("lookups: %s: %w", at, err)
		}
		twice = append(twice, some...)
	}
	for _, at := range p.places() {
		if err := p.compareEntries(ctx, at, &r, remove); err != nil {
			return r, fmt.Errorf("lookups: %s: %w", at.Table, err)
		}
	}
	if r.Duplicates, err = p.duplicates(ctx, twice); err != nil {
		return r, err
	}
	if len(twice) > 0 {
		err = p.shared(r.Duplicates, len(twice))
	}
	if r.Missing > int64(len(twice)) {
		err = errors.Join(err, fmt.Errorf("lookups: %w: %d of %d values of %s.%s, such as %v", ErrMissing, r.Missing-int64(len(twice)), r.Rows, p.table.Name, p.lookup.Column, r.Examples))
	}
	return r, err
}

// compareRows searches for the entry of each row. It returns the rows whose value has the entry of another row.
func (p *pass) compareRows(ctx context.Context, at sharding.Target, r *Report) (twice []owner.Entry, err error) {
	var after []driver.Value
	progress := Progress{Pass: ComparingRows, Target: at}
	for {
		rows, err := p.chunk(ctx, runner{p.Router.DB(at.DB)}, at.Table, after)
		if err != nil || len(rows) == 0 {
			return twice, err
		}
		missing, err := p.missing(ctx, rows)
		if err != nil {
			return nil, err
		}
		for _, row := range missing {
			e := owner.Entry{Value: row[0], Key: row[1]}
			gone, taken, err := p.gone(ctx, e)
			switch {
			case err != nil:
				return nil, err
			case gone:
				continue
			case taken:
				twice = append(twice, e)
			case len(r.Examples) < mostExamples:
				r.Examples = append(r.Examples, fmt.Sprintf("%s (%s %s)", shown(row[0]), p.table.Key, shown(row[1])))
			}
			r.Missing++
		}
		after = rows[len(rows)-1][:2]
		progress.Rows += int64(len(rows))
		r.Rows += int64(len(rows))
		p.observe(progress)
	}
}

// gone reports whether a row without an entry does not exist any more, or has an entry with another
// key of the same slot; and whether another row has the entry of its value.
func (p *pass) gone(ctx context.Context, e owner.Entry) (gone, taken bool, err error) {
	found, ok, err := p.owners().Find(ctx, e)
	if err != nil {
		return false, false, err
	}
	if ok {
		together, err := p.owners().Together(found.Key, e.Key)
		if err != nil || together {
			return together, false, err
		}
	}
	there, err := p.there(ctx, e)
	if err != nil || !there || !ok || !p.lookup.Unique {
		return !there, false, err
	}
	taken, err = p.there(ctx, found)
	return false, taken, err
}

// there reports whether the shard has the row of an entry, as the column compares values. It does
// not wait for open transactions: their rows count or do not count. It searches again if the map
// has changed meanwhile, because the slot may have moved. The row of a unique value may have
// another key of the same slot than its entry, after an upsert.
func (p *pass) there(ctx context.Context, e owner.Entry) (bool, error) {
	text, args := `WHERE "v" = ? AND "k" = ? LIMIT 1`, []any{e.Value, e.Key}
	if p.lookup.Unique {
		text, args = `WHERE "v" = ?`, args[:1]
	}
	for {
		now := p.Router.Snapshot()
		at, err := now.Target(p.table.Name, e.Key)
		if err != nil {
			return false, err
		}
		rows, err := runner{p.Router.DB(at.DB)}.Query(ctx, p.text(`SELECT "k" FROM "`+at.Table+`" `+text), args...)
		for _, row := range rows {
			if together, err := p.owners().Together(row[0], e.Key); together || err != nil {
				return together, err
			}
		}
		if err != nil || p.Router.Snapshot() == now {
			return false, err
		}
	}
}

// compareEntries searches for the row of each entry.
func (p *pass) compareEntries(ctx context.Context, at sharding.Target, r *Report, remove func(context.Context, owner.Table, owner.Entry) (bool, error)) error {
	var after []driver.Value
	progress := Progress{Pass: ComparingEntries, Target: at}
	for {
		entries, err := p.chunk(ctx, runner{p.database(at)}, at.Table, after)
		if err != nil || len(entries) == 0 {
			return err
		}
		left, err := p.leftOver(ctx, entries)
		if err != nil {
			return err
		}
		r.Entries += int64(len(entries))
		r.LeftOver += int64(len(left))
		for _, e := range left {
			if remove == nil {
				break
			}
			removed, err := remove(ctx, p.owners(), e)
			if err != nil {
				return err
			}
			if removed {
				r.Removed++
			}
		}
		after = entries[len(entries)-1][:2]
		progress.Rows += int64(len(entries))
		p.observe(progress)
	}
}

// leftOver returns the entries without a row.
func (p *pass) leftOver(ctx context.Context, entries [][]driver.Value) (left []owner.Entry, err error) {
	shards := map[sharding.Target][][]driver.Value{}
	for _, e := range entries {
		at, err := p.Router.Target(p.table.Name, e[1])
		if err != nil {
			return nil, err
		}
		shards[at] = append(shards[at], e)
	}
	for at, some := range shards {
		has, err := p.among(ctx, runner{p.Router.DB(at.DB)}, at.Table, some)
		if err != nil {
			return nil, err
		}
		for _, row := range some {
			if has[textOf(row)] {
				continue
			}
			e := owner.Entry{Value: row[0], Key: row[1]}
			if there, err := p.there(ctx, e); err != nil {
				return nil, err
			} else if !there {
				left = append(left, e)
			}
		}
	}
	return left, nil
}
