// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
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
