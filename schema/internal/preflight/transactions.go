// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
)

// OpenTransaction is a transaction of another connection to a server.
type OpenTransaction struct{ Connection, Seconds int64 }

// ErrNotListed: MySQL lists no transaction while one of their statements cannot be shown.
var ErrNotListed = errors.New("MySQL does not list transactions while one of their statements has bytes that are not UTF-8; ask again")

// Oldest returns the longest open transaction of other connections, or nil if there is none. SQLite shows none.
// The error is a missing right, or ErrNotListed.
func Oldest(ctx context.Context, s *backend.Session) (*OpenTransaction, error) {
	// trx_started is in the time zone of the machine.
	query := "SELECT trx_mysql_thread_id, TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(NOW(), @@session.time_zone, 'SYSTEM')) FROM information_schema.INNODB_TRX" +
		" WHERE trx_mysql_thread_id NOT IN (0, CONNECTION_ID()) ORDER BY trx_started LIMIT 1"
	switch s.Database.Name() {
	case "sqlite":
		return nil, nil //nolint:nilnil // there is nothing to show
	case "postgres":
		query = "SELECT pid, EXTRACT(EPOCH FROM clock_timestamp() - xact_start)::bigint FROM pg_stat_activity" +
			" WHERE xact_start IS NOT NULL AND datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1"
	}
	var t OpenTransaction
	err := s.QueryRowContext(ctx, query).Scan(&t.Connection, &t.Seconds)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil //nolint:nilnil // there is none
	case backend.IsMySQL(err, "3854"):
		return nil, ErrNotListed
	case err != nil:
		return nil, err
	}
	return &t, nil
}

// transactions finds a transaction for whose locks a switch would wait.
func (p serverProbe) transactions(ctx context.Context) error {
	const limit = 60
	oldest, err := Oldest(ctx, p.Session)
	fix := "end it before the switch, which waits for all transactions that have used the tables"
	switch {
	case dialect.FaultOf(err) == dialect.NoRight:
		return nil // the missing privilege is a finding of its own
	case errors.Is(err, ErrNotListed):
		p.add(LongTransactions, Warn, "it is unknown whether a transaction has been open for long: "+err.Error(), "inspect again")
		return nil
	case err == nil && oldest != nil && oldest.Seconds > limit:
		p.add(LongTransactions, Warn, fmt.Sprintf("a transaction has been open for %d seconds, on connection %d", oldest.Seconds, oldest.Connection), fix)
	}
	return err
}
