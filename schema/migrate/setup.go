// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
)

// A row that is copied by one rule and read by another is lost, so a job stores digests of
// the configuration with which it was begun.

// SetupError says that a job was begun with another configuration than the present one.
// Nothing was done. It is an ErrChanged.
type SetupError struct {
	// Differs lists the differences of each table: "table orders: rule, ids".
	Differs []string
}

// Error says what differs and what to do.
func (e *SetupError) Error() string {
	return "the job was begun with another configuration: " + strings.Join(e.Differs, "; ") +
		"; use that configuration, or abort the job with it and begin again"
}

// Is makes a SetupError an ErrChanged.
func (*SetupError) Is(target error) bool { return target == ErrChanged }

// sameSetup fails when the job is under way and was begun with another configuration.
func (w *openJob) sameSetup(ctx context.Context) error {
	return w.Source.Do(ctx, func(s *backend.Session) error {
		differs, err := w.Differs(ctx, s)
		if err == nil && len(differs) > 0 {
			err = &SetupError{differs}
		}
		return err
	})
}
