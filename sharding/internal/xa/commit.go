// SPDX-License-Identifier: Apache-2.0

package xa

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/sharding"
)

// Branch is what a transaction has done on a database that does not decide.
type Branch interface {
	// Prepare makes sure that the branch can be committed whatever happens to the
	// program, its connection or the server.
	Prepare(ctx context.Context) error
	// Commit commits a branch that is prepared. It may have been committed already.
	Commit(ctx context.Context) error
	// Rollback ends a branch that is not to be committed, prepared or not. What it cannot
	// end is left to a resolver.
	Rollback(ctx context.Context)
	// Leave gives up the connection of a prepared branch, which a resolver ends.
	Leave()
}

// Decider is what a transaction has done on the database that decides.
type Decider interface {
	// Decide adds the decision to commit to what is to be committed. It is sharding.ErrResolved when
	// another decision is there.
	Decide(ctx context.Context) error
	// Commit commits, and with it the decision.
	Commit() error
	// Rollback ends it without a decision.
	Rollback()
	// Committed says on another connection what was decided, after an error of Commit. Where
	// nothing was, it decides that the transaction is not committed.
	Committed(ctx context.Context) (bool, error)
	// Forget removes the decision, when every branch has ended.
	Forget(ctx context.Context)
}

// Commit commits a transaction everywhere or nowhere. Nil says that it is committed: a branch
// whose database is away then is committed by a resolver.
func Commit(ctx context.Context, first Decider, others []Branch) error {
	for _, b := range others {
		if err := b.Prepare(ctx); err != nil {
			rollBack(ctx, first, others)
			return err
		}
	}
	if err := first.Decide(ctx); err != nil {
		rollBack(ctx, first, others)
		return err
	}
	if failed := first.Commit(); failed != nil {
		committed, err := first.Committed(ctx)
		switch {
		case err != nil:
			for _, b := range others {
				b.Leave()
			}
			return fmt.Errorf("%w: COMMIT failed (%w), and the database that decides cannot be asked: %w", sharding.ErrInDoubt, failed, err)
		case !committed:
			for _, b := range others {
				b.Rollback(ctx)
			}
			return failed
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

func rollBack(ctx context.Context, first Decider, others []Branch) {
	first.Rollback()
	for _, b := range others {
		b.Rollback(ctx)
	}
}

// Left is a prepared branch that was found on a server.
type Left interface {
	// Committed says what was decided about its transaction. Where nothing was, it decides
	// that the transaction is not committed.
	Committed(ctx context.Context) (bool, error)
	// End commits the branch, or rolls it back. It may have ended already.
	End(ctx context.Context, commit bool) error
}

// Settle ends a branch that its program has left, and says how.
func Settle(ctx context.Context, b Left) (committed bool, err error) {
	committed, err = b.Committed(ctx)
	if err != nil {
		return false, err
	}
	return committed, b.End(ctx, committed)
}
