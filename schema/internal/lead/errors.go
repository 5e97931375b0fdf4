// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/internal/openjob"
)

// Errors that this package and the stages wrap. Package migrate documents them.
var (
	// ErrLocked says that another runner leads the job on this database.
	ErrLocked = errors.New("migrate: another runner leads this job; it holds the lock until its process ends, or a minute after it was last heard of")

	// ErrFenced says that a newer runner leads the job.
	ErrFenced = errors.New("migrate: fenced: a newer runner leads this job; leave it to that one")

	// ErrPhase says that the phase of the job does not allow the step.
	ErrPhase = errors.New("migrate: wrong phase")
)

// Explain replaces the error of a statement by the change of a table that caused it.
func Explain(ctx context.Context, err error, unchanged func(context.Context) error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrFenced) || errors.Is(err, openjob.ErrChanged) || errors.Is(err, ErrPhase) {
		return err
	}
	if cause := unchanged(ctx); errors.Is(cause, openjob.ErrChanged) || errors.Is(cause, ErrPhase) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
