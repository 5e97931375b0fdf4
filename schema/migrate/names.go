package migrate

import (
	"strconv"

	"github.com/shardid/shardid/sharding"
)

// The tables that jobs share, on the source and on every database with shards.
const (
	jobTable   = "shardid_job"
	spanTable  = "shardid_span"
	routeTable = sharding.RouteTable

	// The fence of the source is locked during a switch, so that of the shards is
	// another table: they may be in the same database.
	fenceTable      = "shardid_fence"
	shardFenceTable = "shardid_shard_fence"

	// ownerTable is where a database with shards notes which job its tables belong
	// to; targetTable is where the source notes what these tables were.
	ownerTable  = "shardid_owner"
	targetTable = "shardid_target"
)

// retired is the name of a table of the source after the switch.
func retired(table string) string { return table + "_old" }

// sealed is the name of a shard after a rollback, under which nobody writes.
func sealed(table string) string { return table + "_sealed" }

// logTable is where changes on the source are noted.
func (j *Job) logTable() string { return "shardid_log_" + j.cfg.Name }

// backTable is where changes on the shards are noted after the switch.
func (j *Job) backTable() string { return "shardid_back_" + j.cfg.Name }

// triggerName is unique in a database: which log, which table, which event.
func (j *Job) triggerName(kind string, number int, event string) string {
	return "shardid_" + j.cfg.Name + "_" + kind + strconv.Itoa(number) + "_" + event
}
