// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Class are the ids Offset, Offset+Step, Offset+2·Step, …: those that one of several
// servers or connections may give. Old connections of a table that is to get generated ids
// use one class and the generator another (early id switch); the servers of an [Expansion]
// use one each.
type Class struct {
	Offset int `json:"offset"` // auto_increment_offset, from 1 to Step
	Step   int `json:"step"`   // auto_increment_increment, at most 65,535
}

// maxStep is the largest step that servers accept; they would reduce a larger one.
const maxStep = 65_535

func (c Class) validate() error {
	if c.Step < 1 || c.Step > maxStep || c.Offset < 1 || c.Offset > c.Step {
		return fmt.Errorf("%w: Class: offset %d and step %d; a step is from 1 to %d, an offset from 1 to the step", ErrConfig, c.Offset, c.Step, maxStep)
	}
	return nil
}

// String returns "offset 1, step 2".
func (c Class) String() string { return fmt.Sprintf("offset %d, step %d", c.Offset, c.Step) }

// Parameters returns the parameters to add to the DSN of github.com/go-sql-driver/mysql, so
// that connections number in this class. They apply to every connection opened with it,
// whatever the server's own settings are.
func (c Class) Parameters() string {
	return fmt.Sprintf("auto_increment_increment=%d&auto_increment_offset=%d", c.Step, c.Offset)
}

// Statement returns the SQL that makes the class the server's default, for connections
// opened later without parameters. Open connections keep theirs, and a restart resets it
// unless the server's configuration has it, too.
func (c Class) Statement() string {
	return fmt.Sprintf("SET GLOBAL auto_increment_increment = %d, GLOBAL auto_increment_offset = %d", c.Step, c.Offset)
}

// holds is the condition that an id above 0 belongs to the class.
func (c Class) holds(id string) string {
	return fmt.Sprintf("(%s - %d) %% %d = 0", id, c.Offset, c.Step)
}

// Strays are ids of a table outside of the class in which it should number.
type Strays struct {
	Count       int64
	First, Last int64 // 0 when there are none
}

// FindStrays counts the ids from first on that do not belong to the class: rows of
// connections with other settings, which open connections of a pool keep whatever the
// server's settings are. It reads the table's primary key from there on. On MySQL it also
// fails with ErrNotReady when a connection that has written nothing yet has another step or
// offset; MariaDB does not show that.
func FindStrays(ctx context.Context, db *sql.DB, table, key string, first int64, c Class) (Strays, error) {
	if err := errors.Join(dialect.CheckIdent(table), dialect.CheckIdent(key), c.validate()); err != nil {
		return Strays{}, err
	}
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return Strays{}, err
	}
	var found Strays
	var low, high sql.NullInt64
	id := server.Quote(key)
	err = db.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*), MIN(%s), MAX(%[1]s) FROM %[2]s WHERE %[1]s >= %[3]d AND NOT (%[4]s)",
		id, server.Quote(table), first, c.holds(id))).Scan(&found.Count, &low, &high)
	if err != nil {
		return Strays{}, fmt.Errorf("migrate: count ids of %s: %w", table, err)
	}
	found.First, found.Last = low.Int64, high.Int64
	return found, otherSteps(ctx, db, server, c)
}

// otherSteps checks the settings of the open connections.
func otherSteps(ctx context.Context, db *sql.DB, server dialect.Server, c Class) error {
	if server.Name() != "mysql" {
		return nil
	}
	if shown, err := showsSettings(ctx, db); err != nil || !shown {
		return err
	}
	var other int64
	err := db.QueryRowContext(ctx, `SELECT COUNT(DISTINCT t.PROCESSLIST_ID) FROM performance_schema.variables_by_thread v JOIN performance_schema.threads t ON t.THREAD_ID = v.THREAD_ID
		WHERE COALESCE(t.PROCESSLIST_DB, DATABASE()) = DATABASE() AND t.TYPE = 'FOREGROUND' AND t.PROCESSLIST_ID <> CONNECTION_ID()
		AND (v.VARIABLE_NAME = 'auto_increment_increment' AND v.VARIABLE_VALUE <> ? OR v.VARIABLE_NAME = 'auto_increment_offset' AND v.VARIABLE_VALUE <> ?)`,
		strconv.Itoa(c.Step), strconv.Itoa(c.Offset)).Scan(&other)
	if err == nil && other > 0 {
		err = fmt.Errorf("%w: %d open connections have other settings than %v; close them", ErrNotReady, other, c)
	}
	return err
}

// Unseen are open connections whose settings the server does not show.
type Unseen struct {
	DB    string `json:"database"`
	Count int64  `json:"count"`
}

// UnseenConnections returns the databases of a table with connections that CheckExpansion
// cannot check, because the server does not show the settings of other connections:
// MariaDB, and MySQL without performance_schema. A connection opened before the server's
// settings were changed, and without [Class.Parameters], still has the old settings.
// Connections of other users are counted only with the privilege PROCESS.
func UnseenConnections(ctx context.Context, dbs sharding.DBs, t sharding.Table) ([]Unseen, error) {
	var all []Unseen
	seen := map[string]bool{}
	for _, at := range t.Map.Targets() {
		db := dbs[at.DB]
		if seen[at.DB] || db == nil {
			continue
		}
		seen[at.DB] = true
		n, err := unseenOn(ctx, db)
		if err != nil {
			return nil, fmt.Errorf("migrate: look at the open connections of %s: %w", at.DB, err)
		}
		if n > 0 {
			all = append(all, Unseen{at.DB, n})
		}
	}
	return all, nil
}

func unseenOn(ctx context.Context, db *sql.DB) (n int64, err error) {
	if err := numbersByStep(ctx, db); err != nil {
		return 0, err
	}
	shown, err := showsSettings(ctx, db)
	if err != nil || shown {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER NOT IN ('system user', 'event_scheduler') AND COMMAND NOT LIKE 'Binlog Dump%'").Scan(&n)
	return n, err
}

// numbersByStep refuses databases that have no offset and step for their ids.
func numbersByStep(ctx context.Context, db *sql.DB) error {
	server, err := dialect.Detect(ctx, db)
	if err == nil && server.Dialect.Name() != (dialect.MySQL{}).Name() {
		err = fmt.Errorf("%w: %s has no auto_increment_offset; only tables of MySQL and MariaDB can be expanded; move slots with a Mover instead", ErrUnsupported, server.Dialect.Name())
	}
	return err
}

// showsSettings reports whether the server shows the settings of connections.
func showsSettings(ctx context.Context, db *sql.DB) (bool, error) {
	var there int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'performance_schema' AND TABLE_NAME = 'variables_by_thread' AND @@performance_schema = 1").Scan(&there)
	return there > 0, err
}
