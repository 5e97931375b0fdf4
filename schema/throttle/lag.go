// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
)

// askFor is how long a replica may take to answer.
const askFor = 3 * time.Second

// lag is the cause that a replica is behind.
type lag struct {
	of   Replica
	beat *heartbeat
	most time.Duration
}

func (l *lag) why(ctx context.Context) (string, error) {
	if err := l.beat.keep(ctx); err != nil {
		return "", err
	}
	seen, err := l.beat.read(ctx, l.of.DB)
	if err != nil {
		return fmt.Sprintf("replica %s does not answer: %v", l.of.Name, err), ctx.Err()
	}
	missing, behind := l.beat.after(seen)
	if !behind {
		return "", nil
	}
	late := time.Since(missing.at)
	switch {
	case seen < l.beat.first:
		return fmt.Sprintf("replica %s is at least %s behind, at most %s: it has shown no heartbeat of this runner yet%s", l.of.Name, shown(late), l.most, l.stopped(ctx)), nil
	case late > l.most:
		return fmt.Sprintf("replica %s is %s behind, at most %s%s", l.of.Name, shown(late), l.most, l.stopped(ctx)), nil
	}
	return "", nil
}

// stopped says which part of the replication is stopped; "" when none is or the server does
// not show it.
func (l *lag) stopped(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	if l.beat.source.dialect == (dialect.Postgres{}) {
		return l.stoppedStandby(ctx)
	}
	for _, ask := range []string{"SHOW ALL REPLICAS STATUS", "SHOW REPLICA STATUS"} { // MariaDB, MySQL
		var found []string
		sources := 0
		err := sqlrun.Each(ctx, l.of.DB, func(rows *sql.Rows) error {
			sources++
			var err error
			found, err = stoppedThreads(rows, found)
			return err
		}, ask)
		switch {
		case err != nil: // the server knows another form, or the user lacks the right
		case sources == 0:
			return "; it is not configured as a replica"
		case len(found) > 0:
			return "; " + strings.Join(found, ", ")
		default:
			return ""
		}
	}
	return ""
}

// stoppedStandby says why a PostgreSQL server replicates nothing. A server that only
// replays files has no receiver either.
func (l *lag) stoppedStandby(ctx context.Context) string {
	var standby, paused, receives bool
	err := l.of.DB.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE FALSE END,"+
		" EXISTS (SELECT 1 FROM pg_stat_wal_receiver)").Scan(&standby, &paused, &receives)
	switch {
	case err != nil:
		return ""
	case !standby:
		return "; it is not configured as a replica"
	case paused:
		return "; its replay of the log is paused"
	case !receives:
		return "; no WAL receiver is running on it"
	}
	return ""
}

// stoppedThreads adds the threads of one source that are not running.
func stoppedThreads(rows *sql.Rows, found []string) ([]string, error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(columns))
	into := make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	about := map[string]string{}
	for i, column := range columns {
		about[column] = values[i].String
	}
	for _, thread := range []string{"IO", "SQL"} {
		running, known := about["Replica_"+thread+"_Running"]
		if !known {
			running, known = about["Slave_"+thread+"_Running"]
		}
		if !known || running == "Yes" {
			continue
		}
		text := fmt.Sprintf("its %s thread is not running (%s)", thread, running)
		if code := about["Last_"+thread+"_Errno"]; code != "" && code != "0" {
			text = fmt.Sprintf("its %s thread is not running (%s, error %s)", thread, running, code)
		}
		found = append(found, text)
	}
	return found, nil
}

// shown formats a duration for people.
func shown(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond * 100).String()
	}
	return d.Round(time.Second).String()
}
