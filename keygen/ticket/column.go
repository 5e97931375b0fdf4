package ticket

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// look looks once at what the column id holds, and whether the table outlives a
// crash. A table that is missing is found by the statements that use it.
func (t *Table) look(ctx context.Context, conn *sql.Conn) error {
	if t.most.Load() > 0 {
		return nil
	}
	column, err := dialect.WholeNumbers(ctx, conn, dialect.MySQL{}, t.cfg.Name, "id")
	if err != nil || column.Type == "" {
		return err
	}
	if column.Most == 0 {
		return &keygen.SetupError{
			Err:  fmt.Errorf("the column id is of the type %s, which does not hold every whole number exactly", column.Type),
			Cure: "make it a bigint, as the package's comment says",
		}
	}
	engine, err := dialect.Forgetful(ctx, conn, dialect.MySQL{}, t.cfg.Name)
	if err != nil {
		return err
	}
	if engine != "" {
		return &keygen.SetupError{
			Err:  fmt.Errorf("the table is of the engine %s, which has no transactions: tickets that it has given can be gone after a crash of the server", engine),
			Cure: fmt.Sprintf("change its engine (ALTER TABLE %s ENGINE = InnoDB), and then see that AUTO_INCREMENT is above the ids in use", t.cfg.Name),
		}
	}
	t.most.Store(column.Most)
	return nil
}

// end returns the highest number that id holds.
func (t *Table) end() int64 {
	if most := t.most.Load(); most > 0 {
		return most
	}
	return 1<<63 - 1
}

// full says that the column has no more numbers. The last one of it is no ticket:
// REPLACE might give it again and again.
func (t *Table) full(why string) error {
	return fmt.Errorf("%w: %s, and its column ends at %d; a column that is no bigint has to become one, or the server leaves the family", keygen.ErrExhausted, why, t.end())
}
