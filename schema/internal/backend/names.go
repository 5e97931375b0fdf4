// SPDX-License-Identifier: Apache-2.0

package backend

import "github.com/shardid/shardid/sharding"

// The tables that jobs share, on the source and on every database with shards.
const (
	JobTable   = "shardid_job"
	SpanTable  = "shardid_span"
	RouteTable = sharding.RouteTable

	// FenceTable is locked on the source during a switch, so that the fence of the
	// shards is another table: they may be in the same database.
	FenceTable      = "shardid_fence"
	ShardFenceTable = "shardid_shard_fence"

	// OwnerTable is where a database with shards notes which job its tables belong
	// to; TargetTable is where the source notes what these tables were.
	OwnerTable  = "shardid_owner"
	TargetTable = "shardid_target"

	// BeatTable is what replicas of the source are asked for, to see how far they are.
	BeatTable = "shardid_beat"
)

// Retired is the name of a table of the source after the switch.
func Retired(table string) string { return table + "_old" }

// Sealed is the name of a shard after a rollback, under which nobody writes.
func Sealed(table string) string { return table + "_sealed" }
