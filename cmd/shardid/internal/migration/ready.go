// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// beginTable stores on the source where the generator of each table begins. The counter
// itself does not show it: it is above ids that processes hold and have not used yet.
const beginTable = "shardid_seed"

// noteBegin stores that generators give no id below begin for the table. A reader between
// the two statements finds the counter, which is not below begin.
func noteBegin(ctx context.Context, db *sql.DB, table string, begin int64) error {
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return err
	}
	for _, note := range []struct {
		text string
		args []any
	}{
		{"CREATE TABLE IF NOT EXISTS " + beginTable + " (name VARCHAR(64) NOT NULL PRIMARY KEY, begins BIGINT NOT NULL)", nil},
		{"DELETE FROM " + beginTable + " WHERE name = ?", []any{table}},
		{"INSERT INTO " + beginTable + " (name, begins) VALUES (?, ?)", []any{table, begin}},
	} {
		if _, err := db.ExecContext(ctx, dialect.Text(server, note.text), note.args...); err != nil {
			return fmt.Errorf("note where the ids of %s begin: %w", table, err)
		}
	}
	return nil
}

// beginOf returns the lowest id that a generator may give for the table; false if nobody
// has seeded it, so that its keys come from elsewhere.
func beginOf(ctx context.Context, db *sql.DB, table string) (begin int64, seeded bool, err error) {
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return 0, false, err
	}
	for _, query := range []string{
		"SELECT begins FROM " + beginTable + " WHERE name = ?",
		"SELECT max_id FROM leaf_alloc WHERE biz_tag = ?", // seeded by other means
	} {
		err := db.QueryRowContext(ctx, dialect.Text(server, query), table).Scan(&begin)
		switch {
		case err == nil:
			return begin, true, nil
		case !errors.Is(err, sql.ErrNoRows) && dialect.FaultOf(err) != dialect.NoTable:
			return 0, false, fmt.Errorf("read where the ids of %s begin: %w", table, err)
		}
	}
	return 0, false, nil
}

// readRoutes reads which tables a rollback has moved back to the source. It is called
// before the pause of a cutover, in which the rows are locked.
func (o *Operation) readRoutes(ctx context.Context) error {
	o.returned = map[string]bool{}
	for _, t := range o.cfg.Tables {
		row, err := sharding.ReadRoute(ctx, o.cfg.Source, t.Name)
		if err != nil {
			return err
		}
		o.returned[t.Name] = row.Route == sharding.Returned
	}
	return nil
}

// ready refuses a cutover after which a generator would give existing ids. Renumbered ids
// are compared by their old values. Ids of a map table come from the generator itself; so
// do those of a source that serves after a rollback.
func (o *Operation) ready(ctx context.Context, highest map[string]int64) error {
	for _, t := range o.cfg.Tables {
		if o.returned[t.Name] {
			continue
		}
		last, err := t.IDs.Old(highest[t.Name])
		if errors.Is(err, migrate.ErrNoID) {
			continue
		}
		if err != nil {
			return err
		}
		begin, seeded, err := beginOf(ctx, o.cfg.Source, t.Name)
		if err != nil {
			return err
		}
		if seeded && last >= begin {
			return fmt.Errorf("%s has ids up to %s, and its generator begins at %s; run shardid migrate seed with a larger margin, restart every process of the application, as it may hold ids from before, and try again; or, if generators make the ids of all programs already: DELETE FROM "+beginTable+" WHERE name = '%s' on the source",
				t.Name, term.Number(last), term.Number(begin), t.Name)
		}
	}
	return nil
}
