// SPDX-License-Identifier: Apache-2.0

package lookups

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/owner"
)

// progressTable is the table in the home database with the progress of Build.
const progressTable = "shardid_lookup_progress"

const progressDDL = `CREATE TABLE IF NOT EXISTS "` + progressTable + `" ("lookup" VARCHAR(64) NOT NULL, "place" VARCHAR(190) NOT NULL,
	"last_value" VARCHAR(1000) NOT NULL, "last_key" VARCHAR(1000) NOT NULL, PRIMARY KEY ("lookup", "place"))`

// ErrDuplicates: two rows have one value of a unique lookup.
var ErrDuplicates = errors.New("values that must be unique have several owners")

// Build enters all rows of the shards into a lookup table that is declared with
// [sharding.Lookup].Building. Applications may write meanwhile; all of them must have maintained
// the lookup table since before Build begins. Build continues after the last chunk of a call that
// was interrupted, and compares all rows at the end ([Verify]). If two rows have one value of a
// unique lookup, the error wraps [ErrDuplicates] and names both, as Report.Duplicates does; all
// other rows are entered.
func Build(ctx context.Context, c Config) (r Report, err error) {
	p, err := c.openMade(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if !p.lookup.Building {
		return r, fmt.Errorf("lookups: the lookup of %s.%s is in use; to fill it again, declare it with Building and deploy that to all programs first", p.table.Name, p.lookup.Column)
	}
	if err := sqlrun.Create(ctx, p.Home, dialect.Text(p.dialect, progressDDL)); err != nil {
		return r, fmt.Errorf("lookups: %w", err)
	}
	for _, at := range p.table.Map.Targets() {
		if err := p.fill(ctx, at); err != nil {
			return r, fmt.Errorf("lookups: %s: %w", at, err)
		}
	}
	if r, err = p.verify(ctx, nil); err == nil || errors.Is(err, ErrMissing) || errors.Is(err, ErrDuplicates) { // otherwise the next call only compares
		err = errors.Join(err, p.forget(ctx))
	}
	return r, err
}

// mostDuplicates is the largest number of values whose owners are reported.
const mostDuplicates = 100

// Owner is a row with its value, and its location.
type Owner struct {
	Value, Key string
	Target     sharding.Target
}

// duplicates returns the owners of the values that could not be entered.
func (p *pass) duplicates(ctx context.Context, twice []owner.Entry) (all [][]Owner, err error) {
	places := map[string]int{} // by value, the index of its owners
	for _, e := range twice {
		rows, err := runner{p.routed}.Query(ctx, p.text(`SELECT "v", "k" FROM "l" WHERE "v" = ?`), e.Value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []driver.Value{e.Value, e.Key}) // the only owner, if the other row was deleted meanwhile
		i, known := places[textOf(rows[0])]
		if known {
			rows = rows[1:]
		} else if i = len(all); i == mostDuplicates {
			continue
		} else {
			places[textOf(rows[0])], all = i, append(all, nil)
		}
		for _, row := range rows {
			at, err := p.table.Target(row[1])
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], Owner{shown(row[0]), shown(row[1]), at})
		}
	}
	return all, nil
}

// shared returns the error of values that several rows have.
func (p *pass) shared(duplicates [][]Owner, rows int) error {
	var examples []string
	for _, owners := range duplicates[:min(len(duplicates), mostExamples)] {
		var names []string
		for _, o := range owners {
			names = append(names, fmt.Sprintf("%s (%s %s, %s)", o.Value, p.table.Key, o.Key, o.Target))
		}
		examples = append(examples, strings.Join(names, " and "))
	}
	return fmt.Errorf("lookups: %w: %d rows of %s have the %s of another row: %s", ErrDuplicates, rows, p.table.Name, p.lookup.Column, strings.Join(examples, "; "))
}

func shown(v any) string {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	return fmt.Sprintf("%v", v)
}

// fill enters the rows of one physical table.
func (p *pass) fill(ctx context.Context, at sharding.Target) error {
	after, err := p.reached(ctx, at)
	if err != nil {
		return err
	}
	progress := Progress{Pass: Entering, Target: at}
	for {
		rows, err := p.chunk(ctx, runner{p.Router.DB(at.DB)}, at.Table, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		missing, err := p.missing(ctx, rows)
		if err != nil {
			return err
		}
		entered, err := p.enter(ctx, missing)
		if err != nil {
			return err
		}
		after = rows[len(rows)-1][:2]
		if err := p.reach(ctx, at, after); err != nil {
			return err
		}
		progress.Rows += int64(len(rows))
		progress.Entered += int64(entered)
		p.observe(progress)
	}
}

// enter adds entries in the databases of their values, but not those of values that another row has. It returns how many.
func (p *pass) enter(ctx context.Context, rows [][]driver.Value) (entered int, err error) {
	of, sharded := p.Router.Table(p.lookup.Table)
	places := map[sharding.Target][]owner.Entry{}
	for _, row := range rows {
		at := sharding.Target{}
		if sharded {
			if at, err = of.Target(row[0]); err != nil {
				return 0, err
			}
		}
		places[at] = append(places[at], owner.Claimed(row[0], row[1]))
	}
	for _, entries := range places {
		twice, err := owner.Fill(ctx, p.owners(), entries)
		if err != nil {
			return 0, err
		}
		entered += len(entries) - len(twice)
	}
	return entered, nil
}

// chunk reads the next values and keys of a table after the given ones, in order. It returns an error if these are read again,
// because the caller would go on for ever: a driver of SQLite returns a text of a DATETIME as a time, and writes it otherwise.
func (p *pass) chunk(ctx context.Context, on runner, table string, after []driver.Value) ([][]driver.Value, error) {
	where, args := ``, []any(nil)
	if after != nil {
		where, args = ` AND ("v" > ? OR "v" = ? AND "k" > ?)`, []any{after[0], after[0], after[1]}
	}
	rows, err := on.Query(ctx, p.text(`SELECT DISTINCT "v", "k" FROM "`+table+`" WHERE "v" IS NOT NULL`+where+` ORDER BY "v", "k" LIMIT `+strconv.Itoa(p.ChunkRows)), args...)
	if err == nil && after != nil && len(rows) > 0 && textOf(rows[len(rows)-1]) == textOf(after) {
		err = fmt.Errorf("%w: column %s or %s of %s does not sort the values as it returns them: %v follows itself", sharding.ErrLookup, p.lookup.Column, p.table.Key, table, shown(after[0]))
	}
	return rows, err
}

// missing returns the rows without an entry.
func (p *pass) missing(ctx context.Context, rows [][]driver.Value) (missing [][]driver.Value, err error) {
	has, err := p.among(ctx, runner{p.routed}, p.lookup.Table, rows)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row []driver.Value) bool { return has[textOf(row)] }), nil
}

// among returns which of some values and keys a table has.
func (p *pass) among(ctx context.Context, on runner, table string, rows [][]driver.Value) (map[string]bool, error) {
	has := map[string]bool{}
	for some := range slices.Chunk(rows, 500) {
		args := make([]any, len(some))
		for i, row := range some {
			args[i] = row[0]
		}
		found, err := on.Query(ctx, p.text(`SELECT "v", "k" FROM "`+table+`" WHERE "v" IN (?`+strings.Repeat(", ?", len(args)-1)+`)`), args...)
		if err != nil {
			return nil, err
		}
		for _, row := range found {
			has[textOf(row)] = true
		}
	}
	return has, nil
}

func textOf(row []driver.Value) string { return fmt.Sprintf("%q %q", shown(row[0]), shown(row[1])) }

// reached returns the value and the key after which a call continues, nil at the beginning.
func (p *pass) reached(ctx context.Context, at sharding.Target) ([]driver.Value, error) {
	rows, err := runner{p.Home}.Query(ctx, dialect.Text(p.dialect, `SELECT "last_value", "last_key" FROM "`+progressTable+`" WHERE "lookup" = ? AND "place" = ?`), p.lookup.Table, at.String())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return []driver.Value{shown(rows[0][0]), shown(rows[0][1])}, nil
}

// reach stores them.
func (p *pass) reach(ctx context.Context, at sharding.Target, row []driver.Value) error {
	home := runner{p.Home}
	args := []any{shown(row[0]), shown(row[1]), p.lookup.Table, at.String()}
	n, err := home.Exec(ctx, dialect.Text(p.dialect, `UPDATE "`+progressTable+`" SET "last_value" = ?, "last_key" = ? WHERE "lookup" = ? AND "place" = ?`), args...)
	if err == nil && n == 0 {
		_, err = home.Exec(ctx, dialect.Text(p.dialect, `INSERT INTO "`+progressTable+`" ("last_value", "last_key", "lookup", "place") VALUES (?, ?, ?, ?)`), args...)
	}
	return err
}

// forget deletes the progress, so that the next call starts at the beginning.
func (p *pass) forget(ctx context.Context) error {
	_, err := runner{p.Home}.Exec(ctx, dialect.Text(p.dialect, `DELETE FROM "`+progressTable+`" WHERE "lookup" = ?`), p.lookup.Table)
	return err
}
