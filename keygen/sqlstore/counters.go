package sqlstore

import (
	"context"
	"fmt"
	"math"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// counterTable is a table with a counter in each row.
type counterTable struct {
	name  string
	key   string // the column that names the counter
	value string // the column that holds it
	next  int64  // how far the next id is above the value: 0 where ranges are [old, new), 1 where (old, new]
	seed  string // how a row is made
	kind  int    // index of Store.most

	also map[string]string // what a reservation sets besides, by dialect
}

// The tables of other people are as their own code makes them.
const (
	leafKind = iota
	tinyIDKind
	cosIDKind
	counterKinds
)

// explained adds to an error of the database what to do about a table that is not
// ours to make.
func (of *counterTable) explained(err error) error {
	if of.kind == leafKind {
		return err
	}
	switch dialect.FaultOf(err) {
	case dialect.NoTable, dialect.NoColumn:
		return &keygen.SetupError{Err: err, Cure: "open the store on the database that has the table " + of.name + ", as its own people make it"}
	case dialect.NoRight:
		return &keygen.SetupError{Err: err, Cure: "give the user SELECT and UPDATE on " + of.name}
	}
	return err
}

// highest returns the highest number that the table's value holds.
func (s *Store) highest(of *counterTable) int64 {
	if most := s.most[of.kind].Load(); most > 0 {
		return most
	}
	return math.MaxInt64
}

// lookAtCounters looks once at a table that holds counters: at what its column
// holds, and whether it outlives a crash. A table that is missing is found by the
// statements that use it.
func (s *Store) lookAtCounters(ctx context.Context, on session, of *counterTable) error {
	if s.most[of.kind].Load() > 0 {
		return nil
	}
	most, err := on.holds(ctx, of.name, of.value)
	if err != nil || most == 0 {
		return err
	}
	if err := on.durable(ctx, of.name, of.value+" is above the ids in use"); err != nil {
		return err
	}
	s.most[of.kind].Store(most)
	return nil
}

// leaseTables are what leases are written into, with the columns of which nothing may
// be cut: a ceiling that is would leave the worker id to the next process at once.
var leaseTables = []struct {
	table   string
	columns []string
}{
	{"worker_lease", []string{"worker_id", "era", "generation", "ceiling"}},
	{"worker_namespace", []string{"epoch_us", "unit_ns", "longest_us", "safe_from_us"}},
}

// lookAtLeases looks once at the tables that hold leases.
func (s *Store) lookAtLeases(ctx context.Context, on session) error {
	if s.leasable.Load() {
		return nil
	}
	for _, of := range leaseTables {
		for _, column := range of.columns {
			most, err := on.holds(ctx, of.table, column)
			if err != nil {
				return err
			}
			if most > 0 && most < math.MaxInt64 {
				return &keygen.SetupError{
					Err:  fmt.Errorf("%s.%s ends at %d, and a number beyond it may be cut", of.table, column, most),
					Cure: "make it a bigint, as `shardid schema` prints it",
				}
			}
		}
		if err := on.durable(ctx, of.table, "no process runs that has a lease"); err != nil {
			return err
		}
	}
	s.leasable.Store(true)
	return nil
}

// holds returns the highest number that a column holds, 0 where there is no such
// column.
func (s session) holds(ctx context.Context, table, column string) (most int64, err error) {
	is, err := dialect.WholeNumbers(ctx, s.conn, s.server, table, column)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", table, err)
	}
	if is.Type != "" && is.Most == 0 {
		return 0, &keygen.SetupError{
			Err:  fmt.Errorf("%s.%s is of the type %s, which does not hold every whole number exactly", table, column, is.Type),
			Cure: "make it a bigint, as `shardid schema` prints it",
		}
	}
	return is.Most, nil
}

// durable refuses a table that may forget what it has acknowledged. Then is what has
// to be looked after once that is changed.
func (s session) durable(ctx context.Context, table, then string) error {
	engine, err := dialect.Forgetful(ctx, s.conn, s.server, table)
	if err != nil {
		return fmt.Errorf("look at %s: %w", table, err)
	}
	if engine == "" {
		return nil
	}
	return &keygen.SetupError{
		Err:  fmt.Errorf("%s is a table of the engine %s, which has no transactions: what it has acknowledged can be gone after a crash of the server", table, engine),
		Cure: fmt.Sprintf("change its engine (ALTER TABLE %s ENGINE = InnoDB), and see that %s", table, then),
	}
}
