// SPDX-License-Identifier: Apache-2.0

package sharding

import "context"

// Hint is the routing information in a context. The zero Hint has none. At most one of On, Table,
// All and Unsharded is set.
type Hint struct {
	// On is the target of all statements; see the function [On].
	On Target
	// Table and Key choose the target of that key; see [OnKey].
	Table string
	Key   any
	// All allows every shard; see [AllShards].
	All bool
	// Unsharded means that names are physical names; see [Unsharded].
	Unsharded bool
	// Primary keeps reads away from replicas; see [Primary].
	Primary bool
}

// Placed reports whether the hint chooses one target.
func (h Hint) Placed() bool { return h.On != Target{} || h.Table != "" }

type hintKey struct{}

// HintOf returns the routing information in ctx.
func HintOf(ctx context.Context) Hint {
	if h, ok := ctx.Value(hintKey{}).(*Hint); ok {
		return *h
	}
	return Hint{}
}

// hinted returns ctx with h, which replaces the Hint in ctx. Only Primary is kept, because it is
// independent of the target.
func hinted(ctx context.Context, h Hint) context.Context {
	h.Primary = h.Primary || HintOf(ctx).Primary
	return context.WithValue(ctx, hintKey{}, &h)
}

// On sends the statements of the context to one target. Where they name the target's logical table,
// or another table of its group, the physical table is used. TRUNCATE, DDL and statements that cannot
// be parsed stay refused: send them with physical names to [Router.DB]. On replaces an earlier On,
// OnKey, AllShards or Unsharded of ctx.
func On(ctx context.Context, target Target) context.Context {
	return hinted(ctx, Hint{On: target})
}

// OnKey is [On] with the target of the row of the table that has this sharding key. If the key
// cannot be placed, the statement returns the error.
//
// OnKey chooses the target and adds no condition: a statement without a key sees all rows on the
// target, those of other keys included. A statement with keys is refused with [ErrCrossShard]
// unless all of them are on that target, whereas [On] sends any query, UPDATE or DELETE to its
// target.
func OnKey(ctx context.Context, table string, key any) context.Context {
	return hinted(ctx, Hint{Table: table, Key: key})
}

// AllShards lets the statements of the context go to every shard, writes included, unless their own
// conditions need fewer. The limits of [FanOut] apply. It replaces an earlier On, OnKey or
// Unsharded of ctx.
func AllShards(ctx context.Context) context.Context {
	return hinted(ctx, Hint{All: true})
}

// Unsharded makes the names in statements of the context physical names: nothing is routed, and
// nothing is refused. It is for tables that share the name of a sharded table, for example during a
// migration. It replaces an earlier On, OnKey or AllShards of ctx.
func Unsharded(ctx context.Context) context.Context {
	return hinted(ctx, Hint{Unsharded: true})
}

// Primary keeps the reads of the context away from replicas. It does not change the other hints.
func Primary(ctx context.Context) context.Context {
	h := HintOf(ctx)
	h.Primary = true
	return hinted(ctx, h)
}
