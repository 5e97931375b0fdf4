package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// present is what a server says of itself at one moment.
type present struct {
	micros   int64  // since 1970, by its own clock
	identity string // another one after a fail-over that may have lost something
	node     string // of this one server of a cluster
	birth    string // what the header's creation notes as identity
}

// knows reports whether an identity that was noted is this server's, or that of the
// cluster that it belongs to. Releases before clusters were known noted the server.
func (p present) knows(noted string) bool {
	return noted == p.identity || noted == p.node || noted == p.birth
}

// The clock is read without the session's time zone. It is that of the
// statement's start: where a statement waited for a lock a later time could be
// read, but an earlier one only makes leases shorter.
const (
	mysqlMicros  = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`
	mysqlPresent = `SELECT ` + mysqlMicros + `, %[1]s, %[2]s,
		CONCAT_WS(':', @@server_id, @@port, @@hostname), TIMESTAMPDIFF(SECOND, NOW(6), SYSDATE(6))`
	postgresMicros  = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)`
	postgresPresent = `SELECT micros, server AS identity, server AS node, server AS birth, 0 FROM (
		SELECT ` + postgresMicros + ` AS micros,
			CASE WHEN pg_is_in_recovery() THEN '' ELSE %[1]s END AS server
		) AS present`
	sqlitePresent = `SELECT CAST(strftime('%%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%%f', 'now'), 4) AS INTEGER) * 1000,
		%[1]s, %[2]s, %[2]s, 0`
)

// serverMicros is the server's clock in microseconds since 1970, on SQLite in whole
// seconds.
var serverMicros = map[string]string{
	mysqlName: mysqlMicros, postgresName: postgresMicros, sqliteName: `CAST(strftime('%s', 'now') AS INTEGER) * 1000000`,
}

// skewLimit is the difference in seconds between the session's idea of the time
// and the server's from which on the session's was set by hand.
const skewLimit = 2

func (s session) present(ctx context.Context) (p present, err error) {
	var skew int64
	if err := s.row(ctx, presentQuery(s.server)).Scan(&p.micros, &p.identity, &p.node, &p.birth, &skew); err != nil {
		return p, fmt.Errorf("ask the server for its time and identity: %w", err)
	}
	switch {
	case p.identity == "":
		return p, fmt.Errorf("%w: it is a standby, which leases nothing", keygen.ErrReadOnly)
	case skew > skewLimit || skew < -skewLimit:
		return p, &keygen.SetupError{Err: errors.New("the session's variable timestamp is set, so the server's clock cannot be read"), Cure: "open the store's database without it"}
	}
	return p, nil
}

func presentQuery(server dialect.Server) string {
	query := mysqlPresent
	switch server.Name() {
	case postgresName:
		query = postgresPresent
	case sqliteName:
		query = sqlitePresent
	}
	return fmt.Sprintf(query, server.IdentityExpr(), server.NodeExpr())
}

// skipLocked is how a statement locks a row that may be locked already, without
// waiting for it.
func skipLocked(server dialect.Server) string {
	oldest := map[dialect.Kind][2]int{
		dialect.KindMySQL: {8, 0}, dialect.KindMariaDB: {10, 6}, dialect.KindVitess: {8, 0}, dialect.KindPostgreSQL: {9, 5},
	}
	if since, can := oldest[server.Kind]; can && server.AtLeast(since[0], since[1]) {
		return " FOR UPDATE SKIP LOCKED"
	}
	return forUpdate(server)
}

// forUpdate is how a statement locks a row. SQLite's transactions have locked
// the whole file.
func forUpdate(server dialect.Server) string {
	if server.Name() == sqliteName {
		return ""
	}
	return " FOR UPDATE"
}
