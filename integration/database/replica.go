// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/internal/testwait"
)

// Replica is a server of MariaDB or MySQL that replicates from another one and takes over later.
// Both log in rows and have server ids of their own.
type Replica struct {
	db, primary *sql.DB
	words       *strings.Replacer // from MySQL's words to the server's
	mariadb     bool
}

// Replicate starts replication of everything that the primary has logged since it exists. The copy must
// be empty.
func Replicate(t *testing.T, primary, copied Server) *Replica {
	t.Helper()
	r := &Replica{db: OpenPlain(t, copied, ""), primary: OpenPlain(t, primary, ""), words: strings.NewReplacer()}
	port := MustNumber(t, r.primary, "SELECT @@port")
	setUp := fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = 'root', GET_SOURCE_PUBLIC_KEY = 1", port)
	if version := Texts(t, r.db, "SELECT VERSION()")[0]; strings.Contains(version, "MariaDB") {
		r.words = strings.NewReplacer("BINARY LOG STATUS", "BINLOG STATUS", "Source", "Master", "sync_source", "sync_master")
		r.mariadb = true
		setUp = fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos", port)
	}
	Exec(t, r.db, setUp)
	Exec(t, r.db, "START REPLICA")
	r.CatchUp(t)
	return r
}

// Acknowledge makes each commit on the primary wait until the copy has received it.
func (r *Replica) Acknowledge(t *testing.T) {
	t.Helper()
	if r.mariadb {
		Exec(t, r.db, "SET GLOBAL rpl_semi_sync_slave_enabled = ON")
	} else {
		Exec(t, r.primary, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
		Exec(t, r.db, "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'")
		Exec(t, r.db, "SET GLOBAL rpl_semi_sync_replica_enabled = ON")
	}
	Exec(t, r.db, "STOP REPLICA IO_THREAD")
	Exec(t, r.db, "START REPLICA IO_THREAD")
	for _, setting := range []string{"wait_point = AFTER_SYNC", "timeout = 3600000", "enabled = ON"} {
		Exec(t, r.primary, "SET GLOBAL "+r.words.Replace("rpl_semi_sync_source_")+setting)
	}
	testwait.Until(t, "the primary waits for its copy", func() bool {
		return r.row(t, r.primary, "SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_source_clients'")["Value"] != "0"
	})
}

// row returns the columns of a statement that has one row.
func (r *Replica) row(t *testing.T, db *sql.DB, statement string) map[string]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), r.words.Replace(statement))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		t.Fatalf("%s: %v, %v", statement, err, rows.Err())
	}
	values, texts := make([]any, len(columns)), make([]sql.NullString, len(columns))
	for i := range values {
		values[i] = &texts[i]
	}
	if err := rows.Scan(values...); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i, name := range columns {
		all[name] = texts[i].String
	}
	return all
}

// at reports whether the copy has received, or applied, the log up to a position.
func (r *Replica) at(t *testing.T, file, position, toFile, toPosition string) bool {
	t.Helper()
	is := r.row(t, r.db, "SHOW REPLICA STATUS")
	if failed := is["Last_SQL_Error"]; failed != "" {
		t.Fatal(failed)
	}
	return is[r.words.Replace(file)] == toFile && is[r.words.Replace(position)] == toPosition
}

// Receive waits until the copy has received, but perhaps not applied, what the primary has.
func (r *Replica) Receive(t *testing.T) {
	t.Helper()
	to := r.row(t, r.primary, "SHOW BINARY LOG STATUS")
	testwait.Until(t, "the copy receives", func() bool { return r.at(t, "Source_Log_File", "Read_Source_Log_Pos", to["File"], to["Position"]) })
}

// CatchUp waits until the copy has what the primary has.
func (r *Replica) CatchUp(t *testing.T) {
	t.Helper()
	to := r.row(t, r.primary, "SHOW BINARY LOG STATUS")
	testwait.Until(t, "the copy catches up", func() bool {
		return r.at(t, "Relay_Source_Log_File", "Exec_Source_Log_Pos", to["File"], to["Position"])
	})
}

// Hold makes the copy read-only. It receives changes, and does not apply them.
func (r *Replica) Hold(t *testing.T) {
	t.Helper()
	Exec(t, r.db, "SET GLOBAL read_only = ON")
	Exec(t, r.db, "STOP REPLICA SQL_THREAD")
}

// CutOff ends replication.
func (r *Replica) CutOff(t *testing.T) {
	t.Helper()
	Exec(t, r.db, "STOP REPLICA")
}

// TakeOver makes the copy a primary after it has applied what it has received.
func (r *Replica) TakeOver(t *testing.T) {
	t.Helper()
	Exec(t, r.db, "START REPLICA SQL_THREAD") // before the other thread stops: if both stand still, MariaDB drops what was received
	Exec(t, r.db, "STOP REPLICA IO_THREAD")
	received := r.row(t, r.db, "SHOW REPLICA STATUS")
	file, position := received[r.words.Replace("Source_Log_File")], received[r.words.Replace("Read_Source_Log_Pos")]
	testwait.Until(t, "the copy applies what it has received", func() bool {
		return r.at(t, "Relay_Source_Log_File", "Exec_Source_Log_Pos", file, position)
	})
	Exec(t, r.db, "STOP REPLICA")
	Exec(t, r.db, "RESET REPLICA ALL")
	Exec(t, r.db, "SET GLOBAL read_only = OFF")
}

// OpenPlain opens a database as it is, which may not exist.
func OpenPlain(t *testing.T, s DSNOpener, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(DriverOf(s), s.DSN(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// DriverOf returns the name of the driver for a server.
func DriverOf(s DSNOpener) string {
	if strings.HasPrefix(s.DSN(""), "postgres") {
		return "pgx"
	}
	return "mysql"
}

// Address is a name that leads to one server, and later to another one.
type Address struct {
	driver driver.DriverContext
	dsn    atomic.Pointer[string]
}

// NewAddress returns an address of a database.
func NewAddress(t *testing.T, s DSNOpener, name string) *Address {
	t.Helper()
	a := &Address{driver: OpenPlain(t, s, name).Driver().(driver.DriverContext)}
	a.Move(s, name)
	return a
}

// Move lets new connections lead to a server.
func (a *Address) Move(s DSNOpener, name string) {
	dsn := s.DSN(name)
	a.dsn.Store(&dsn)
}

// Connect implements driver.Connector.
func (a *Address) Connect(ctx context.Context) (driver.Conn, error) {
	connector, err := a.driver.OpenConnector(*a.dsn.Load())
	if err != nil {
		return nil, err
	}
	return connector.Connect(ctx)
}

// Driver implements driver.Connector.
func (a *Address) Driver() driver.Driver { return a.driver.(driver.Driver) }

// Open opens a pool of an address.
func (a *Address) Open(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(a)
	t.Cleanup(func() { _ = db.Close() })
	return db
}
