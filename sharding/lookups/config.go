// SPDX-License-Identifier: Apache-2.0

package lookups

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/owner"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Config names a lookup.
type Config struct {
	// Router knows the table, its shards, and the lookup table if that is sharded. It is required.
	Router *sharding.Router
	// Home is the database of the lookup tables that are not sharded, and of Build's progress. It
	// is required.
	Home *sql.DB
	// Table is the logical name of the table, and Column is the column of one of its Lookups. Both
	// are required.
	Table, Column string
	// ChunkRows is the number of rows that are read at a time, at least 1. Defaults to 1000.
	ChunkRows int
	// Observe is called after each chunk, in the caller's own goroutine. Defaults to none.
	Observe func(Progress)
}

// Progress is the progress of a call in one table.
type Progress struct {
	Pass    Pass
	Target  sharding.Target // DB is "" for a lookup table in Home
	Rows    int64           // the rows of this target, in this pass of this call
	Entered int64           // the rows of them that Build has entered
}

// Pass is a phase of a call. A call executes its passes one after another, each over all tables.
type Pass string

// The passes, in their order.
const (
	Entering         Pass = "entering"          // Build enters the rows of the shards
	ComparingRows    Pass = "comparing rows"    // the entry of each row is searched for
	ComparingEntries Pass = "comparing entries" // the row of each entry is searched for
)

// ErrNotALookup: the table has no lookup of this column.
var ErrNotALookup = errors.New("no such lookup")

// ErrNotMade: the lookup table does not exist. [Create] creates it.
var ErrNotMade = errors.New("the lookup table does not exist")

// pass is one call on a lookup.
type pass struct {
	Config

	table   sharding.Table
	lookup  *sharding.Lookup
	dialect dialect.Dialect
	routed  *sql.DB // the lookup table by its logical name
}

// Check returns the errors of c, without querying a database.
func (c Config) Check() error {
	_, err := c.named()
	return err
}

// named finds the table and its lookup.
func (c Config) named() (*pass, error) {
	if c.Router == nil || c.Home == nil {
		return nil, errors.New("lookups: Config.Router or Config.Home is nil")
	}
	if c.ChunkRows < 0 {
		return nil, fmt.Errorf("lookups: Config.ChunkRows is %d; leave it out, or set it to at least 1", c.ChunkRows)
	}
	if c.ChunkRows == 0 {
		c.ChunkRows = 1000
	}
	p := &pass{Config: c}
	var ok bool
	if p.table, ok = c.Router.Table(c.Table); !ok {
		return nil, fmt.Errorf("lookups: table %q: %w", c.Table, sharding.ErrUnknownTable)
	}
	for i := range p.table.Lookups {
		if strings.EqualFold(p.table.Lookups[i].Column, c.Column) {
			p.lookup = &p.table.Lookups[i]
		}
	}
	if p.lookup == nil {
		return nil, fmt.Errorf("lookups: table %q, column %q: %w; declare it in sharding.Table.Lookups", c.Table, c.Column, ErrNotALookup)
	}
	return p, nil
}

// open returns a pass, which the caller must close.
func (c Config) open(ctx context.Context) (*pass, error) {
	p, err := c.named()
	if err != nil {
		return nil, err
	}
	if p.dialect, err = dialect.Detect(ctx, c.Home); err != nil {
		return nil, fmt.Errorf("lookups: %w", err)
	}
	at := p.table.Map.Targets()[0]
	if err := owner.Sought(ctx, p.dialect, c.Router.DB(at.DB), at.Table, p.lookup.Column); err != nil {
		return nil, fmt.Errorf("lookups: %s: %w; look another column up", at, err)
	}
	p.routed = shardsql.OpenDB(shardsql.Config{Router: c.Router, Home: c.Home})
	return p, nil
}

// openMade is open for calls that need the lookup table.
func (c Config) openMade(ctx context.Context) (*pass, error) {
	p, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	for _, at := range p.places() {
		_, err := runner{p.database(at)}.Query(ctx, p.text(`SELECT 1 FROM "`+at.Table+`" WHERE 1 = 0`))
		if dialect.FaultOf(err) == dialect.NoTable {
			err = fmt.Errorf("lookups: %w: create %s with shardid lookup create, lookups.Create or gormplugin.Migrate: %w", ErrNotMade, at.Table, err)
		}
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	return p, nil
}

// database returns the database of a physical lookup table.
func (p *pass) database(at sharding.Target) *sql.DB {
	if at.DB == "" {
		return p.Home
	}
	return p.Router.DB(at.DB)
}

func (p *pass) observe(progress Progress) {
	if p.Observe != nil {
		p.Observe(progress)
	}
}

func (p *pass) close() error { return p.routed.Close() }

// owners returns the lookup table in the form of package owner.
func (p *pass) owners() *owner.SQL {
	return &owner.SQL{
		Of: &p.table, Now: p.Router.Snapshot, Lookup: p.lookup, Dialect: p.dialect, Entries: runner{p.routed},
		On: func(ctx context.Context, at sharding.Target, f func(owner.Runner, bool) error) (err error) {
			conn, err := p.Router.DB(at.DB).Conn(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, conn.Close()) }()
			return f(runner{conn}, false)
		},
	}
}

// handle is a pool or a connection.
type handle interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// runner executes statements outside of transactions.
type runner struct{ on handle }

// Exec returns the number of affected rows.
func (r runner) Exec(ctx context.Context, text string, args ...any) (int64, error) {
	result, err := r.on.ExecContext(sharding.AllShards(ctx), text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query returns all rows.
func (r runner) Query(ctx context.Context, text string, args ...any) (all [][]driver.Value, err error) {
	err = dialect.Each(sharding.AllShards(ctx), r.on, func(rows *sql.Rows) error {
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		row, into := make([]driver.Value, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		all = append(all, row)
		return nil
	}, text, args...)
	return all, err
}

// text translates a statement to the dialect: "l", "v" and "k" are the lookup table and its
// columns; the table has columns of the same names.
func (p *pass) text(statement string) string {
	names := strings.NewReplacer(`"l"`, `"`+p.lookup.Table+`"`, `"v"`, `"`+p.lookup.Column+`"`, `"k"`, `"`+p.table.Key+`"`)
	return dialect.Text(p.dialect, names.Replace(statement))
}
