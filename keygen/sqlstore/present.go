// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// present is a server's clock and identity at one moment.
type present struct {
	micros    int64  // microseconds since 1970, by the server's clock
	identity  string // changes with a fail-over that may have lost commits
	node      string // of this member of a cluster
	createdAs string // the identity that the creation of the header stored
}

// isServer returns true when a stored identity is that of this server or of its cluster.
// Releases that did not detect clusters stored the member's identity.
func (p present) isServer(noted string) bool {
	return noted == p.identity || noted == p.node || noted == p.createdAs
}

// The clock is read independently of the session's time zone, as of the statement's start.
// After a wait for a lock the true time is later, but an earlier time only makes leases
// shorter.
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

// skewLimit is a difference in seconds between the session's and the server's time. From it on,
// somebody has set the session's time by hand.
const skewLimit = 2

func (s session) present(ctx context.Context) (p present, err error) {
	var skew int64
	if err := s.row(ctx, presentQuery(s.server)).Scan(&p.micros, &p.identity, &p.node, &p.createdAs, &skew); err != nil {
		return p, fmt.Errorf("ask the server for its time and identity: %w", err)
	}
	switch {
	case p.identity == "":
		return p, fmt.Errorf("%w: the server is a standby, and leases must be written", keygen.ErrReadOnly)
	case skew > skewLimit || skew < -skewLimit:
		return p, &keygen.SetupError{Err: errors.New("the session's variable timestamp is set, so the server's clock cannot be read"), Cure: "remove the variable from the connection's settings"}
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

// skipLocked is the clause that locks a row and skips rows that are locked already.
func skipLocked(server dialect.Server) string {
	oldest := map[dialect.Kind][2]int{
		dialect.KindMySQL: {8, 0}, dialect.KindMariaDB: {10, 6}, dialect.KindVitess: {8, 0}, dialect.KindPostgreSQL: {9, 5},
	}
	if since, can := oldest[server.Kind]; can && server.AtLeast(since[0], since[1]) {
		return " FOR UPDATE SKIP LOCKED"
	}
	return forUpdate(server)
}

// forUpdate is the clause that locks a row. In SQLite a transaction locks the whole file
// instead.
func forUpdate(server dialect.Server) string {
	if server.Name() == sqliteName {
		return ""
	}
	return " FOR UPDATE"
}
