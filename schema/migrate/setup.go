package migrate

import (
	"context"
	"database/sql"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/proto"
)

// What is copied by one rule and looked for by another is lost, so a job remembers
// what it was begun with.

// SetupError says that a job was begun with another configuration than it is
// given now. Nothing was done. It is an ErrChanged.
type SetupError struct {
	// Differs says what, for each table: "table orders: rule, ids".
	Differs []string
}

// Error says what differs and what to do.
func (e *SetupError) Error() string {
	return "the job was begun with another configuration: " + strings.Join(e.Differs, "; ") +
		"; give it the one it had, or abort it with that one and begin anew"
}

// Is makes a SetupError an ErrChanged.
func (*SetupError) Is(target error) bool { return target == ErrChanged }

func (w *openJob) sameSetup(ctx context.Context) error {
	return w.Source.Do(ctx, func(s *backend.Session) error { return w.checkSetup(ctx, s) })
}

// checkSetup fails when the job is under way and was begun with another
// configuration. A table of which nothing is noted is taken as it is.
func (w *openJob) checkSetup(ctx context.Context, s *backend.Session) error {
	phase, err := w.phase(ctx, s)
	if err != nil || phase == "" || phase == proto.Aborted || phase == proto.Finalized {
		return err
	}
	var names, digests []string
	err = s.Each(ctx, func(rows *sql.Rows) error {
		var name, digest string
		err := rows.Scan(&name, &digest)
		names, digests = append(names, name), append(digests, digest)
		return err
	}, "SELECT name, setup FROM "+backend.SpanTable+" WHERE job = ? ORDER BY tbl", w.cfg.Name)
	if err != nil {
		return err
	}
	if differs := w.Tables.Differs(names, digests); len(differs) > 0 {
		return &SetupError{differs}
	}
	return nil
}
