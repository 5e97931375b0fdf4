// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// ownTable is one of shardid's tables, with the columns that Apply checks. A table made by
// Leaf or UidGenerator may have further columns.
type ownTable struct {
	name    string
	key     []string
	bigints []string
	others  []string
	numbers bool    // the key numbers new rows by itself
	added   []added // columns that earlier versions did not create
}

// added is a column that a table of an earlier version lacks, and the statement that adds
// it on every database.
type added struct{ column, alter string }

// ownTables are in the order of the DDL's statements.
var ownTables = []ownTable{
	{name: "leaf_alloc", key: []string{"biz_tag"}, bigints: []string{"max_id"}, others: []string{"step", "update_time"}},
	{name: "WORKER_NODE", key: []string{"ID"}, bigints: []string{"ID"}, numbers: true,
		others: []string{"HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE", "MODIFIED", "CREATED"}},
	{name: "worker_lease", key: []string{"namespace", "worker_id"},
		bigints: []string{"worker_id", "era", "generation", "ceiling"}, others: []string{"owner", "holder"}},
	{name: "worker_namespace", key: []string{"namespace"},
		bigints: []string{"epoch_us", "unit_ns", "longest_us", "safe_from_us"}, others: []string{"identity"},
		added: []added{{"layout", "ALTER TABLE worker_namespace ADD COLUMN layout VARCHAR(255) NOT NULL DEFAULT ''"}}},
}

// Apply creates the tables leaf_alloc, WORKER_NODE, worker_lease and worker_namespace where
// they do not exist, and checks those that exist. Tables made by Leaf or UidGenerator can
// be used as they are; a table that cannot be used is a *ColumnError. Apply alters an
// existing table in one case only: it adds the column layout to a worker_namespace of an
// earlier version.
// This needs the right to alter that table, once. Processes of earlier versions continue to
// work with it.
//
// Apply may be called at every start, by several processes at once. Where all tables exist,
// it needs no right to create any.
func Apply(ctx context.Context, db *sql.DB) error {
	return withSession(ctx, db, func(s session) error {
		return inCatalog(ctx, s, func(c catalog) error {
			for _, step := range plan(ddl(s)) {
				if err := step.install(ctx, s, c); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// creation is the statements that create one table.
type creation struct {
	own    ownTable
	create string
	fill   []string // insert the first rows into a new table
}

// plan parses shardid's own DDL. An INSERT belongs to the CREATE TABLE before it. The
// remaining statements add columns to tables of earlier versions; they are for those who
// run the file by hand.
func plan(ddl string) []creation {
	var steps []creation
	for _, statement := range statements(ddl) {
		if strings.Contains(statement, "CREATE TABLE") {
			steps = append(steps, creation{own: ownTables[len(steps)], create: statement})
			continue
		}
		if strings.Contains(statement, "INTO") {
			last := &steps[len(steps)-1]
			last.fill = append(last.fill, statement)
		}
	}
	return steps
}

func (step creation) install(ctx context.Context, s session, c catalog) error {
	t, err := c.table(ctx, step.own.name)
	if errors.Is(err, ErrNoTable) {
		created, failed := step.run(ctx, s)
		if failed == nil && step.own.name == "worker_namespace" {
			failed = s.nameCluster(ctx)
		}
		t, err = c.table(ctx, step.own.name)
		// PostgreSQL reports an error when another process creates the table at the same time.
		if failed != nil && (created || err != nil) {
			err = failed
		}
	}
	if err == nil {
		t, err = step.own.update(ctx, s, c, t)
	}
	if err != nil {
		return fmt.Errorf("schema: table %s: %w", step.own.name, err)
	}
	return step.own.check(t)
}

// update adds the columns that a table of an earlier version lacks.
func (own ownTable) update(ctx context.Context, s session, c catalog, t table) (table, error) {
	for _, a := range own.added {
		if _, there := t.column(a.column); there {
			continue
		}
		_, failed := s.ExecContext(ctx, a.alter)
		var err error
		if t, err = c.table(ctx, own.name); err != nil {
			return t, err
		}
		if _, there := t.column(a.column); !there && failed != nil { // no other process has added it
			return t, fmt.Errorf("add the column, or have somebody with the right to alter the table run %s: %w", a.alter, failed)
		}
	}
	return t, nil
}

// run creates the table and inserts its first rows, in one transaction where the database
// can do that; MySQL commits each statement by itself. created reports whether the CREATE
// TABLE succeeded.
func (step creation) run(ctx context.Context, s session) (created bool, err error) {
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		for i, statement := range append([]string{step.create}, step.fill...) {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("create it: %w", err)
			}
			created = created || i == 0
		}
		return nil
	})
	return created, err
}

// createdHere is the identity that the DDL for MySQL stores.
const createdHere = `CONCAT_WS(':', @@server_id, @@port, @@hostname)`

// nameCluster replaces the identity that the DDL has stored, which is that of one server,
// by the identity of the server's cluster. Otherwise the first lease on another member
// would count as one after a failover, and would begin two lease terms later.
func (s session) nameCluster(ctx context.Context) error {
	server, err := dialect.Identify(ctx, s)
	if err != nil || server.Cluster == "" {
		return err
	}
	_, err = s.ExecContext(ctx, "UPDATE worker_namespace SET identity = "+server.IdentityExpr()+
		" WHERE namespace = '' AND longest_us = 0 AND identity = "+createdHere)
	return err
}

func (own ownTable) check(t table) error {
	if !slices.Equal(t.primaryKey, own.key) {
		return &ColumnError{Table: own.name, Column: strings.Join(own.key, ", "), Need: "the primary key"}
	}
	for _, name := range own.bigints {
		if col, ok := t.column(name); !ok || col.max < math.MaxInt64 {
			return &ColumnError{Table: own.name, Column: name, Need: "a BIGINT", Missing: !ok}
		}
	}
	for _, a := range own.added {
		if _, ok := t.column(a.column); !ok {
			return &ColumnError{Table: own.name, Column: a.column, Need: "there", Missing: true}
		}
	}
	for _, name := range own.others {
		if _, ok := t.column(name); !ok {
			return &ColumnError{Table: own.name, Column: name, Need: "there", Missing: true}
		}
	}
	if key, _ := t.key(); own.numbers && !key.auto {
		return &ColumnError{Table: own.name, Column: own.key[0], Need: "a column that numbers new rows (AUTO_INCREMENT or IDENTITY)"}
	}
	return nil
}
