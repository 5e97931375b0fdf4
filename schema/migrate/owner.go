package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/shardid/shardid/schema/migrate/internal/proto"
)

// errOwned: register has made nothing, now or before.
var errOwned = fmt.Errorf("%w: a table belongs to one job", ErrNotReady)

// checkOwner refuses tables that another job has: two that write to the same
// shards would take each other's rows for strays, and an Abort of one would empty
// what the other serves from. In a transaction the answer holds until its end, if
// all jobs of the source wait for it, as they do after lockJobs.
func (w *world) checkOwner(ctx context.Context, s *session) error {
	return s.each(ctx, func(rows *sql.Rows) error {
		var job, name string
		if err := rows.Scan(&job, &name); err != nil {
			return err
		}
		for _, t := range w.tables {
			if strings.EqualFold(t.conf.Name, name) || strings.EqualFold(t.conf.Name, retired(name)) {
				return fmt.Errorf("%w: %s is of job %s; go on with that one by its name, or abort it", errOwned, t.conf.Name, job)
			}
		}
		return nil
	}, "SELECT s.job, s.name FROM "+spanTable+" s JOIN "+jobTable+" j ON j.job = s.job WHERE s.job <> ? AND j.phase <> ?"+s.side.lockRead(),
		w.cfg.Name, string(proto.Finalized))
}

// lockJobs has all jobs of the source wait for the end of the transaction.
func (w *world) lockJobs(ctx context.Context, s *session) error {
	return s.exec(ctx, "UPDATE "+s.side.fence+" SET epoch = epoch")
}
