// SPDX-License-Identifier: Apache-2.0

package xa

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/sharding"
)

// Branch is the part of a transaction on a database other than the deciding one.
type Branch interface {
	// Prepare makes the branch durable, so that it can be committed after the program, its
	// connection or the server has failed.
	Prepare(ctx context.Context) error
	// Commit commits a prepared branch. It may have been committed already.
	Commit(ctx context.Context) error
	// Rollback ends a branch that will not be committed, whether it is prepared or not. If it
	// cannot end the branch, a resolver does.
	Rollback(ctx context.Context)
	// Leave releases the connection of a prepared branch, which a resolver will end.
	Leave()
}

// Decider is the part of a transaction on the deciding database.
type Decider interface {
	// Decide adds the decision to commit to the transaction. It returns sharding.ErrResolved if
	// another decision exists.
	Decide(ctx context.Context) error
	// Commit commits the transaction together with the decision.
	Commit() error
	// Rollback rolls the transaction back without a decision.
	Rollback()
	// Committed reads the decision on another connection, after an error of Commit. If there is
	// none, it decides that the transaction is not committed.
	Committed(ctx context.Context) (bool, error)
	// Forget deletes the decision after every branch has ended.
	Forget(ctx context.Context)
}

// Commit commits a transaction everywhere or nowhere. It returns nil if the transaction is
// committed; a resolver then commits branches on databases that could not be reached.
func Commit(ctx context.Context, first Decider, others []Branch) error {
	for _, b := range others {
		if err := b.Prepare(ctx); err != nil {
			rollBack(ctx, first, others)
			return undone(err)
		}
	}
	if err := first.Decide(ctx); err != nil {
		rollBack(ctx, first, others)
		return undone(err)
	}
	if failed := first.Commit(); failed != nil {
		committed, err := first.Committed(ctx)
		switch {
		case err != nil:
			for _, b := range others {
				b.Leave()
			}
			return fmt.Errorf("%w: COMMIT failed (%w), and the deciding database cannot be queried: %w", sharding.ErrInDoubt, failed, err)
		case !committed:
			for _, b := range others {
				b.Rollback(ctx)
			}
			return undone(failed)
		}
	}
	left := false
	for _, b := range others {
		if err := b.Commit(ctx); err != nil {
			b.Leave()
			left = true
		}
	}
	if !left {
		first.Forget(ctx)
	}
	return nil
}

// undone says what a lost connection alone does not tell.
func undone(err error) error { return fmt.Errorf("sharding: nothing is committed: %w", err) }

func rollBack(ctx context.Context, first Decider, others []Branch) {
	first.Rollback()
	for _, b := range others {
		b.Rollback(ctx)
	}
}

// Left is a prepared branch that was found on a server.
type Left interface {
	// Committed reads the decision on its transaction. If there is none, it decides that the
	// transaction is not committed.
	Committed(ctx context.Context) (bool, error)
	// End commits the branch, or rolls it back. It may have ended already.
	End(ctx context.Context, commit bool) error
}

// Settle ends a branch that its program has left, and returns whether it was committed.
func Settle(ctx context.Context, b Left) (committed bool, err error) {
	committed, err = b.Committed(ctx)
	if err != nil {
		return false, err
	}
	return committed, b.End(ctx, committed)
}
