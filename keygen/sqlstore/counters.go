// SPDX-License-Identifier: Apache-2.0

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
	key   string // the column with the counter's name
	value string // the column with the counter's value
	next  int64  // the next id minus the value: 0 if ranges are [old, new), 1 if they are (old, new]
	seed  string // how to create a row, for messages
	kind  int    // index into Store.highestValues

	also map[string]string // further assignments of the UPDATE, by dialect
}

// counterKinds counts the tables with counters.
const (
	leafKind = iota
	tinyIDKind
	cosIDKind
	counterKinds
)

// explained adds to a database's error what to do about a table that another system creates.
func (of *counterTable) explained(err error) error {
	if of.kind == leafKind {
		return err
	}
	switch dialect.FaultOf(err) {
	case dialect.NoTable, dialect.NoColumn:
		return &keygen.SetupError{Err: err, Cure: "open the store on the database that has the table " + of.name + ", in the form that its own system creates"}
	case dialect.NoRight:
		return &keygen.SetupError{Err: err, Cure: "give the user SELECT and UPDATE on " + of.name}
	}
	return err
}

// highest returns the highest number that the table's column can hold.
func (s *Store) highest(of *counterTable) int64 {
	if most := s.highestValues[of.kind].Load(); most > 0 {
		return most
	}
	return math.MaxInt64
}

// checkCounters checks once which numbers a counter's column can hold, and that the table
// survives a crash. It ignores a missing table, which the next statement reports.
func (s *Store) checkCounters(ctx context.Context, on session, of *counterTable) error {
	if s.highestValues[of.kind].Load() > 0 {
		return nil
	}
	most, err := on.holds(ctx, of.name, of.value)
	if err != nil || most == 0 {
		return err
	}
	if err := on.durable(ctx, of.name, of.value+" is above the ids in use"); err != nil {
		return err
	}
	s.highestValues[of.kind].Store(most)
	return nil
}

// leaseTables are the tables of leases, with the columns in which a number must not be cut. A
// ceiling that the server cuts would free the worker id for another process at once.
var leaseTables = []struct {
	table   string
	columns []string
}{
	{"worker_lease", []string{"worker_id", "era", "generation", "ceiling"}},
	{"worker_namespace", []string{"epoch_us", "unit_ns", "longest_us", "safe_from_us"}},
}

// checkLeases checks the tables of leases once.
func (s *Store) checkLeases(ctx context.Context, on session) error {
	if s.leasesChecked.Load() {
		return nil
	}
	if err := needs(on.server, "a ledger of leases", noLeases); err != nil {
		return err
	}
	for _, of := range leaseTables {
		for _, column := range of.columns {
			most, err := on.holds(ctx, of.table, column)
			if err != nil {
				return err
			}
			if most > 0 && most < math.MaxInt64 {
				return &keygen.SetupError{
					Err:  fmt.Errorf("%s.%s can hold %d at most, and the server may cut a higher number", of.table, column, most),
					Cure: "make it a bigint, as `shardid schema` prints it",
				}
			}
		}
		if err := on.durable(ctx, of.table, "no process runs that has a lease"); err != nil {
			return err
		}
	}
	s.leasesChecked.Store(true)
	return nil
}

// holds returns the highest number that a column can hold, 0 if there is no such column.
func (s session) holds(ctx context.Context, table, column string) (most int64, err error) {
	is, err := dialect.WholeNumbers(ctx, s.conn, s.server, table, column)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", table, err)
	}
	if is.Type != "" && is.Most == 0 {
		return 0, &keygen.SetupError{
			Err:  fmt.Errorf("%s.%s has the type %s, which cannot hold every whole number exactly", table, column, is.Type),
			Cure: "make it a bigint, as `shardid schema` prints it",
		}
	}
	return is.Most, nil
}

// durable refuses a table that can lose acknowledged changes, and one whose rows are on another
// server. Then says what to check after somebody has changed its engine.
func (s session) durable(ctx context.Context, table, then string) error {
	engine, err := dialect.EngineOf(ctx, s.conn, s.server, table)
	switch {
	case err != nil:
		return fmt.Errorf("look at %s: %w", table, err)
	case engine.Remote:
		return &keygen.SetupError{
			Err:  fmt.Errorf("%s is a table of the engine %s, whose rows are on another server: the number that a statement answers with there, that server's clock and its identity do not come through", table, engine.Name),
			Cure: "open the store on the server that has the rows",
		}
	case engine.Forgets:
		return &keygen.SetupError{
			Err:  fmt.Errorf("%s is a table of the engine %s, which has no transactions: after a crash of the server it can lack rows that the server acknowledged", table, engine.Name),
			Cure: fmt.Sprintf("change its engine (ALTER TABLE %s ENGINE = InnoDB), and make sure that %s", table, then),
		}
	}
	return nil
}
