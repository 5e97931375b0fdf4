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

// beginTable remembers on the source where seed had the generator of each table
// begin. The counter itself does not tell: it is beyond ids that processes hold
// already and have not given yet.
const beginTable = "`shardid_seed`" // SQLite knows these quotes, too

// noteBegin remembers that generators give no id below begin for the table.
func noteBegin(ctx context.Context, db *sql.DB, table string, begin int64) error {
	create := "CREATE TABLE IF NOT EXISTS " + beginTable + " (`name` VARCHAR(64) NOT NULL PRIMARY KEY, `begins` BIGINT NOT NULL)"
	if _, err := db.ExecContext(ctx, create); err != nil {
		return fmt.Errorf("note where the ids of %s begin: %w", table, err)
	}
	if _, err := db.ExecContext(ctx, "REPLACE INTO "+beginTable+" (`name`, `begins`) VALUES (?, ?)", table, begin); err != nil {
		return fmt.Errorf("note where the ids of %s begin: %w", table, err)
	}
	return nil
}

// beginOf returns the lowest id that a generator may give to the table, false if
// nobody has seeded it: its keys come from elsewhere.
func beginOf(ctx context.Context, db *sql.DB, table string) (begin int64, seeded bool, err error) {
	for _, query := range []string{
		"SELECT `begins` FROM " + beginTable + " WHERE `name` = ?",
		"SELECT `max_id` FROM `leaf_alloc` WHERE `biz_tag` = ?", // seeded by other means
	} {
		err := db.QueryRowContext(ctx, query, table).Scan(&begin)
		switch {
		case err == nil:
			return begin, true, nil
		case !errors.Is(err, sql.ErrNoRows) && dialect.FaultOf(err) != dialect.NoTable:
			return 0, false, fmt.Errorf("read where the ids of %s begin: %w", table, err)
		}
	}
	return 0, false, nil
}

// readRoutes notes which tables a rollback has returned to the source: in the
// pause of a cutover the rows are locked.
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

// ready refuses a cutover after which a generator would give ids that rows have.
// Ids that are numbered anew are compared as the source knew them; those of a map
// table come from the generator itself, as those of a source do that serves again.
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
			return fmt.Errorf("%s has ids up to %s, and its generator begins at %s; run shardid migrate seed with a larger margin, restart every process of the application, as it may hold ids from before, and try again",
				t.Name, term.Number(last), term.Number(begin))
		}
	}
	return nil
}
