// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
)

// source is the database that rows are read from. Only the goroutine that has the turn of
// the Throttle uses it.
type source struct {
	*sql.DB

	dialect dialect.Dialect // nil until the first query
}

// speaks asks the source for its dialect, once. Its replicas have the same.
func (s *source) speaks(ctx context.Context) (dialect.Dialect, error) {
	if s.dialect == nil {
		server, err := dialect.Detect(ctx, s.DB)
		if err != nil {
			return nil, err
		}
		s.dialect = server.Dialect
	}
	return s.dialect, nil
}

// running counts the running threads, or on PostgreSQL the connections that execute a
// statement.
func (s *source) running(ctx context.Context) (n int, err error) {
	d, err := s.speaks(ctx)
	if err != nil {
		return 0, err
	}
	if d != (dialect.Postgres{}) {
		var name string
		err = s.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_running'").Scan(&name, &n)
		return n, err
	}
	hidden := 0 // A connection that is being opened has no state either, but its query is empty.
	err = s.QueryRowContext(ctx, "SELECT COUNT(*) FILTER (WHERE state = 'active'),"+
		" COUNT(*) FILTER (WHERE state IS NULL AND query = '<insufficient privilege>')"+
		" FROM pg_stat_activity WHERE backend_type IS NULL OR backend_type = 'client backend'").Scan(&n, &hidden)
	if err == nil && hidden > 0 {
		err = fmt.Errorf("%d connections of others are hidden from this user; GRANT pg_read_all_stats to it", hidden)
	}
	return n, err
}
