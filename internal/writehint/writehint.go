// SPDX-License-Identifier: Apache-2.0

// Package writehint carries what an adapter knows of one statement to the engine that
// sends it, in the statement's context: package gormplugin and package sqlxhook have
// filled in ids and conditions, and the text does not say which of them they made.
// What users say of their statements stands in package sharding.
package writehint

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Hint is what an adapter knows of a statement that writes to one table. The zero Hint
// says nothing, and a statement with it is sent as raw SQL is.
type Hint struct {
	// Table is the logical name of the table, in any case. The hint is about statements
	// that write to it; others that get the same context, such as those of a hook, are
	// not concerned.
	Table string
	// Fresh are the numbers of the rows behind VALUES, from 0 and ascending, of which a
	// generator made an id in the primary key just now: no row has it yet. An upsert
	// looks for all other rows on the shards before it stores them; for these it does
	// where it names another unique key than the primary key. Ids that the caller gave are
	// not fresh, and neither are those of a row that is sent once more after an error that
	// leaves open whether it was stored.
	Fresh []int
	// Column is the one that Fresh is about, in any case, where it need not be the primary
	// key.
	Column string
	// Keyed says that an UPDATE or DELETE is about rows of models: its condition names
	// them by their primary keys, and the sharding key was added to it. If it touches
	// fewer rows than it names, the others are looked for on all shards, and the
	// statement is refused where a row lies under another key. It implies Model.
	Keyed bool
	// Model says that an UPDATE sets the columns of a model, most of them to what they are
	// already. It looks for no other unique key than the primary key: the others hold
	// within a table, as they do for an INSERT.
	Model bool
	// Single says that the transaction was begun for this statement alone, and not by
	// the caller. It may write all copies of a broadcast table, as the statement does
	// without a transaction.
	Single bool
	// Completes says that from the switch of a migration on the adapter sends the statement
	// with what it lacks for shards: numbers that the source makes until then, and the
	// sharding keys of its models.
	Completes bool
}

// ErrNumbered: the source of a migration serves again and numbers the column of which
// the rows have ids that were made just now. The engine returns it before it sends
// anything, so that the adapter leaves the column to the source and sends the statement
// again. Users do not see it.
var ErrNumbered = errors.New("the source numbers the column again")

type key struct{}

// hinted is a context with a hint: one allocation, where context.WithValue needs two.
type hinted struct {
	context.Context //nolint:containedctx // it is one

	hint Hint
}

func (c *hinted) Value(of any) any {
	if of == (key{}) {
		return &c.hint
	}
	return c.Context.Value(of)
}

// With returns ctx with a hint, which replaces one that it had. The slice is not copied.
func With(ctx context.Context, h Hint) context.Context {
	return &hinted{ctx, h}
}

// Of returns what is known of a statement that writes to a table, the zero Hint where
// nothing is.
func Of(ctx context.Context, table string) Hint {
	if h, ok := ctx.Value(key{}).(*Hint); ok && strings.EqualFold(h.Table, table) {
		return *h
	}
	return Hint{}
}

// IsFresh reports whether a row has an id that was made just now.
func (h Hint) IsFresh(row int) bool {
	_, fresh := slices.BinarySearch(h.Fresh, row)
	return fresh
}
