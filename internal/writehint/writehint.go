// SPDX-License-Identifier: Apache-2.0

// Package writehint passes an adapter's knowledge of one statement to the engine that sends it, in
// the statement's context: gormplugin and sqlxhook have filled in ids and conditions, and the text
// does not show which. The hints of users are in package sharding.
package writehint

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
)

// Hint is an adapter's knowledge of a statement that writes to one table. A statement with the zero
// Hint is sent like raw SQL.
type Hint struct {
	// Table is the logical name of the table, in any case. The hint applies only to statements that
	// write to it, and not to others with the same context, such as those of a hook.
	Table string
	// Fresh are the indexes of the rows of VALUES, ascending, whose primary key has a newly
	// generated id: no row has it yet. An upsert searches the shards for all other rows before it
	// stores them. It searches for these rows only if it names another unique key than the primary
	// key. Ids of the caller are not fresh, and neither are those of a row that is sent again after
	// an error that does not say whether it was stored.
	Fresh []int
	// Column is the column of Fresh, in any case, if it is not the primary key.
	Column string
	// Keyed says that an UPDATE or DELETE concerns rows of models: its condition names them by
	// their primary keys, and the sharding key was added to it. If it affects fewer rows than it
	// names, the others are searched for on all shards, and the statement is refused if a row has
	// another sharding key. It implies Model.
	Keyed bool
	// Model says that an UPDATE sets the columns of a model, most of them to their present values.
	// It searches for no other unique key than the primary key: the others are unique within a
	// physical table, as for an INSERT.
	Model bool
	// Single says that the transaction was begun for this statement alone, and not by the caller.
	// The statement may write all copies of a broadcast table, as without a transaction.
	Single bool
	// Fills says that after the switch of a migration the adapter fills the ids of an INSERT that the
	// source numbers until then.
	Fills bool
	// Completes says that after the switch of a migration the adapter adds a condition on the
	// sharding keys of its models.
	Completes bool
	// Refusal is the error with which the adapter will refuse the statement after the switch of a
	// migration, or nil.
	Refusal error
}

// ErrNumbered: the source of a migration serves again and numbers the column for which the rows
// have newly generated ids. The engine returns it before it sends anything. The adapter then leaves
// the column to the source and sends the statement again. Users do not see it.
var ErrNumbered = errors.New("the source numbers the column again")

type key struct{}

// hinted is a context with a hint: one allocation, whereas context.WithValue needs two.
type hinted struct {
	context.Context //nolint:containedctx // it is one

	hint  Hint
	ended atomic.Bool
}

func (c *hinted) Value(of any) any {
	if of == (key{}) && !c.ended.Load() {
		return &c.hint
	}
	return c.Context.Value(of)
}

// With returns ctx with a hint, which replaces an earlier one. The slice is not copied.
func With(ctx context.Context, h Hint) context.Context {
	return &hinted{Context: ctx, hint: h}
}

// End removes the hint from a context of With, and from all contexts that were made of it.
func End(ctx context.Context) {
	if c, ok := ctx.(*hinted); ok {
		c.ended.Store(true)
	}
}

// Of returns the hint on a statement that writes to a table, or the zero Hint.
func Of(ctx context.Context, table string) Hint {
	if h, ok := ctx.Value(key{}).(*Hint); ok && strings.EqualFold(h.Table, table) {
		return *h
	}
	return Hint{}
}

// IsFresh reports whether a row has a newly generated id.
func (h Hint) IsFresh(row int) bool {
	_, fresh := slices.BinarySearch(h.Fresh, row)
	return fresh
}
