// SPDX-License-Identifier: Apache-2.0

package sharding

import "context"

// Hint is what a context says about where its statements go. The zero Hint says
// nothing. At most one of On, Table, All and Unsharded is set.
type Hint struct {
	// On is the target of all statements; see the function [On].
	On Target
	// Table and Key stand for the target of that key; see [OnKey].
	Table string
	Key   any
	// All means every shard; see [AllShards].
	All bool
	// Unsharded means that names are physical names; see [Unsharded].
	Unsharded bool
	// Primary keeps reads from replicas; see [Primary].
	Primary bool
}

// Placed reports whether the hint chooses one target.
func (h Hint) Placed() bool { return h.On != Target{} || h.Table != "" }

type hintKey struct{}

// HintOf returns what ctx says about where its statements go.
func HintOf(ctx context.Context) Hint {
	if h, ok := ctx.Value(hintKey{}).(*Hint); ok {
		return *h
	}
	return Hint{}
}

// hinted returns ctx with h, which replaces what ctx said before. Only Primary
// stays, as it answers another question.
func hinted(ctx context.Context, h Hint) context.Context {
	h.Primary = h.Primary || HintOf(ctx).Primary
	return context.WithValue(ctx, hintKey{}, &h)
}

// On sends the statements of the context to one target, raw SQL too: where they
// name the target's logical table, or another table of its group, the physical
// one is meant. It replaces what ctx said with On, OnKey, AllShards or
// Unsharded.
func On(ctx context.Context, target Target) context.Context {
	return hinted(ctx, Hint{On: target})
}

// OnKey is [On] with the target of the row of the table that has this sharding
// key. A key that cannot be placed is reported by the statement.
//
// It chooses the target and adds no condition: a statement without a key of its
// own sees all rows there, those of other keys too. One with keys of its own is
// refused with [ErrCrossShard] unless all of them lie on that target, whereas [On]
// sends any statement but an INSERT where it says.
func OnKey(ctx context.Context, table string, key any) context.Context {
	return hinted(ctx, Hint{Table: table, Key: key})
}

// AllShards lets the statements of the context go to every shard, writes too,
// where their own conditions do not need fewer. The limits of [FanOut] hold. It
// replaces what ctx said with On, OnKey or Unsharded.
func AllShards(ctx context.Context) context.Context {
	return hinted(ctx, Hint{All: true})
}

// Unsharded takes the names in statements of the context as they stand: nothing
// is routed, and nothing is refused. It is for tables that are sharded by name
// only, during a migration say. It replaces what ctx said with On, OnKey or
// AllShards.
func Unsharded(ctx context.Context) context.Context {
	return hinted(ctx, Hint{Unsharded: true})
}

// Primary keeps the reads of the context from replicas, and leaves the other
// hints as they are.
func Primary(ctx context.Context) context.Context {
	h := HintOf(ctx)
	h.Primary = true
	return hinted(ctx, h)
}
