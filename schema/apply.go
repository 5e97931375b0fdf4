package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ownTable is a table of ours and what we need of it: an older one, made by
// the system it comes from, may have other columns beside them.
type ownTable struct {
	name    string
	key     []string
	bigints []string
	others  []string
	numbers bool // the key numbers new rows by itself
}

// ownTables are in the order of the DDL's statements.
var ownTables = []ownTable{
	{name: "leaf_alloc", key: []string{"biz_tag"}, bigints: []string{"max_id"}, others: []string{"step", "update_time"}},
	{name: "WORKER_NODE", key: []string{"ID"}, bigints: []string{"ID"}, numbers: true,
		others: []string{"HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE", "MODIFIED", "CREATED"}},
	{name: "worker_lease", key: []string{"namespace", "worker_id"},
		bigints: []string{"worker_id", "era", "generation", "ceiling"}, others: []string{"owner", "holder"}},
	{name: "worker_namespace", key: []string{"namespace"},
		bigints: []string{"epoch_us", "unit_ns", "longest_us", "safe_from_us"}, others: []string{"identity"}},
}

// Apply creates those of the tables leaf_alloc, WORKER_NODE, worker_lease and
// worker_namespace that do not exist, and checks those that do: tables made by
// Leaf or UidGenerator serve as they are, and one that cannot is a
// *ColumnError. Nothing that exists is altered.
//
// Apply may be called at every start, by several processes at once; where all
// tables exist it needs no right to create any.
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

// creation is how a table of ours comes to be.
type creation struct {
	own    ownTable
	create string
	fill   []string // puts the first rows into a table that was just created
}

// plan reads our own DDL. What is not a CREATE TABLE belongs to the table
// before it.
func plan(ddl string) []creation {
	var steps []creation
	for _, statement := range statements(ddl) {
		if strings.Contains(statement, "CREATE TABLE") {
			steps = append(steps, creation{own: ownTables[len(steps)], create: statement})
			continue
		}
		last := &steps[len(steps)-1]
		last.fill = append(last.fill, statement)
	}
	return steps
}

func (step creation) install(ctx context.Context, s session, c catalog) error {
	t, err := c.table(ctx, step.own.name)
	if errors.Is(err, ErrNoTable) {
		created, failed := step.run(ctx, s)
		t, err = c.table(ctx, step.own.name)
		// PostgreSQL makes it an error that another process was first.
		if failed != nil && (created || err != nil) {
			err = failed
		}
	}
	if err != nil {
		return fmt.Errorf("schema: table %s: %w", step.own.name, err)
	}
	return step.own.check(t)
}

// run creates the table, with its first rows where the database can do both in
// one transaction; MySQL commits each by itself. Created tells whether the
// CREATE TABLE went well.
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

func (own ownTable) check(t table) error {
	if !slices.Equal(t.primaryKey, own.key) {
		return &ColumnError{own.name, strings.Join(own.key, ", "), "the primary key"}
	}
	for _, name := range own.bigints {
		if col, _ := t.column(name); col.max < math.MaxInt64 {
			return &ColumnError{own.name, name, "a BIGINT"}
		}
	}
	for _, name := range own.others {
		if _, ok := t.column(name); !ok {
			return &ColumnError{own.name, name, "there"}
		}
	}
	if key, _ := t.key(); own.numbers && !key.auto {
		return &ColumnError{own.name, own.key[0], "one that numbers new rows (AUTO_INCREMENT or IDENTITY)"}
	}
	return nil
}
