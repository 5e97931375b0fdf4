// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// checkColumn checks once which numbers the column id can hold, that the table survives a
// crash, and who else may write to it. It ignores a missing table, which the next statement reports.
func (t *Table) checkColumn(ctx context.Context, conn *sql.Conn) error {
	if t.maxID.Load() > 0 {
		return nil
	}
	column, err := dialect.WholeNumbers(ctx, conn, dialect.MySQL{}, t.cfg.Name, "id")
	if err != nil || column.Type == "" {
		return err
	}
	if column.Most == 0 {
		return &keygen.SetupError{
			Err:  fmt.Errorf("the column id has the type %s, which cannot hold every whole number exactly", column.Type),
			Cure: "make it a bigint, as the package's comment says",
		}
	}
	engine, err := dialect.EngineOf(ctx, conn, dialect.MySQL{}, t.cfg.Name)
	if err != nil {
		return err
	}
	if engine.Remote {
		return &keygen.SetupError{
			Err:  fmt.Errorf("the table has the engine %s: its rows are on another server, which numbers them by its own settings", engine.Name),
			Cure: "open the database of the server that has the rows",
		}
	}
	if engine.Forgets {
		return &keygen.SetupError{
			Err:  fmt.Errorf("the table has the engine %s, which has no transactions: after a crash of the server it can lose tickets that it gave", engine.Name),
			Cure: fmt.Sprintf("change its engine (ALTER TABLE %s ENGINE = InnoDB), and then make sure that AUTO_INCREMENT is above the ids in use", t.cfg.Name),
		}
	}
	server, err := dialect.Identify(ctx, conn)
	if err != nil {
		return err
	}
	t.severalPrimaries.Store(server.SeveralPrimaries)
	t.maxID.Store(column.Most)
	return nil
}

// maxTicket returns the highest number that the column id can hold.
func (t *Table) maxTicket() int64 {
	if most := t.maxID.Load(); most > 0 {
		return most
	}
	return 1<<63 - 1
}

// columnFull returns the error of a column that has no more numbers. The column's last number
// is never used as a ticket, because REPLACE might return it again and again.
func (t *Table) columnFull(why string) error {
	return fmt.Errorf("%w: %s, and its column ends at %d; change the column to a bigint, or, if it is one, remove the server from the family", keygen.ErrExhausted, why, t.maxTicket())
}
