package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
)

// ownTable is a table of ours and what we need of it: an older one, made by
// the system it comes from, may have other columns beside them.
type ownTable struct {
	name    string
	key     string
	bigints []string
	others  []string
	numbers bool // the key numbers new rows by itself
}

// ownTables are in the order of the DDL's statements.
var ownTables = []ownTable{
	{name: "leaf_alloc", key: "biz_tag", bigints: []string{"max_id"}, others: []string{"step", "update_time"}},
	{name: "WORKER_NODE", key: "ID", bigints: []string{"ID"}, numbers: true,
		others: []string{"HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE", "MODIFIED", "CREATED"}},
}

// Apply creates the tables leaf_alloc and WORKER_NODE where they do not exist,
// and checks those that do: tables made by Leaf or UidGenerator serve as they
// are, and one that cannot is a *ColumnError. Nothing that exists is altered.
//
// Apply may be called at every start, by several processes at once; where both
// tables exist it needs no right to create any.
func Apply(ctx context.Context, db *sql.DB) error {
	return withSession(ctx, db, func(s session) error {
		return inCatalog(ctx, s, func(c catalog) error {
			for i, statement := range statements(ddl(s)) {
				if err := install(ctx, s, c, ownTables[i], statement); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func install(ctx context.Context, s session, c catalog, own ownTable, create string) error {
	t, err := c.table(ctx, own.name)
	if errors.Is(err, ErrNoTable) {
		if _, err = s.ExecContext(ctx, create); err != nil {
			return fmt.Errorf("schema: create table %s: %w", own.name, err)
		}
		t, err = c.table(ctx, own.name) // another process may have been first
	}
	if err != nil {
		return fmt.Errorf("schema: table %s: %w", own.name, err)
	}
	return own.check(t)
}

func (own ownTable) check(t table) error {
	if !slices.Equal(t.primaryKey, []string{own.key}) {
		return &ColumnError{own.name, own.key, "the primary key"}
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
		return &ColumnError{own.name, own.key, "AUTO_INCREMENT"}
	}
	return nil
}
