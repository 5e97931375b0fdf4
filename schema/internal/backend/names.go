// SPDX-License-Identifier: Apache-2.0

package backend

import "github.com/shardid/shardid/sharding"

// The tables that jobs share, on the source and on every database with shards.
const (
	JobTable   = "shardid_job"
	SpanTable  = "shardid_span"
	RouteTable = sharding.RouteTable

	// FenceTable is locked on the source during a switch. The shards, which may be in the same
	// database, have another fence table.
	FenceTable      = "shardid_fence"
	ShardFenceTable = "shardid_shard_fence"

	// OwnerTable is where a database with shards notes which job owns its tables. TargetTable
	// is where the source notes the identities of these tables.
	OwnerTable  = "shardid_owner"
	TargetTable = "shardid_target"

	// BeatTable is what replicas of the source are asked for, to measure their lag.
	BeatTable = "shardid_beat"
)

// Retired is the name of a table of the source after the switch.
func Retired(table string) string { return table + "_old" }

// Sealed is the name of a shard after a rollback; nobody writes to it.
func Sealed(table string) string { return table + "_sealed" }
