package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// present is what a server says of itself at one moment.
type present struct {
	micros   int64  // since 1970, by its own clock
	identity string // it has another one after a fail-over
	birth    string // what the header's creation notes as identity
}

// A server's identity, as an expression of its own.
//
// MySQL is known by its uuid. MariaDB has none, and its server_uid is made of
// network address and port, which servers in containers share; but among servers
// that replicate, server_id differs. All copies of a PostgreSQL database have
// the same system identifier, and each promotion begins a new timeline. An
// SQLite file does not fail over.
const (
	mysqlIdentity    = `@@server_uuid`
	mariadbIdentity  = `CONCAT_WS(':', @@server_id, @@port, @@hostname)` // on MySQL too what the DDL notes
	postgresIdentity = `(SELECT system_identifier FROM pg_control_system()) || ':' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`
	sqliteIdentity   = `'sqlite'`
)

func identity(server dialect.Server) string {
	switch {
	case server.Name() == postgresName:
		return postgresIdentity
	case server.Name() == sqliteName:
		return sqliteIdentity
	case isMariaDB(server):
		return mariadbIdentity
	}
	return mysqlIdentity
}

// The clock is read without the session's time zone. It is that of the
// statement's start: where a statement waited for a lock a later time could be
// read, but an earlier one only makes leases shorter.
const (
	mysqlPresent = `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), %s, ` + mariadbIdentity + `,
		TIMESTAMPDIFF(SECOND, NOW(6), SYSDATE(6))`
	postgresPresent = `SELECT micros, server AS identity, server AS birth, 0 FROM (
		SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint) AS micros,
			CASE WHEN pg_is_in_recovery() THEN '' ELSE ` + postgresIdentity + ` END AS server
		) AS present`
	sqlitePresent = `SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000, ` +
		sqliteIdentity + `, ` + sqliteIdentity + `, 0`
)

// skewLimit is the difference in seconds between the session's idea of the time
// and the server's from which on the session's was set by hand.
const skewLimit = 2

func (s session) present(ctx context.Context) (p present, err error) {
	var skew int64
	if err := s.row(ctx, presentQuery(s.server)).Scan(&p.micros, &p.identity, &p.birth, &skew); err != nil {
		return p, fmt.Errorf("ask the server for its time and identity: %w", err)
	}
	switch {
	case p.identity == "":
		return p, errors.New("the server is a standby, which leases nothing; connect to the primary")
	case skew > skewLimit || skew < -skewLimit:
		return p, &keygen.SetupError{Err: errors.New("the session's variable timestamp is set, so the server's clock cannot be read"), Cure: "open the store's database without it"}
	}
	return p, nil
}

func presentQuery(server dialect.Server) string {
	switch server.Name() {
	case postgresName:
		return postgresPresent
	case sqliteName:
		return sqlitePresent
	}
	return fmt.Sprintf(mysqlPresent, identity(server))
}

func isMariaDB(server dialect.Server) bool { return strings.Contains(server.Version, "MariaDB") }

// skipLocked is how a statement locks a row that may be locked already, without
// waiting for it.
func skipLocked(server dialect.Server) string {
	var major, minor int
	_, _ = fmt.Sscanf(server.Version, "%d.%d", &major, &minor) // an unreadable version has no SKIP LOCKED
	switch {
	case server.Name() == mysqlName && !isMariaDB(server) && major < 8,
		isMariaDB(server) && (major < 10 || major == 10 && minor < 6):
		return forUpdate(server)
	case server.Name() == sqliteName:
		return ""
	}
	return " FOR UPDATE SKIP LOCKED"
}

// forUpdate is how a statement locks a row. SQLite's transactions have locked
// the whole file.
func forUpdate(server dialect.Server) string {
	if server.Name() == sqliteName {
		return ""
	}
	return " FOR UPDATE"
}
