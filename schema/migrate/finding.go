// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"

	"github.com/shardid/shardid/schema/internal/preflight"
)

// Finding is an obstacle, a decision or a hint before a migration. Its JSON form is stable:
// codes may be added, none changes its meaning.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Database string   `json:"database"`        // "source" or the name of a shard's database
	Table    string   `json:"table,omitempty"` // "" when it is about the database
	Message  string   `json:"message"`         // what was found
	Fix      string   `json:"fix"`             // what to do
}

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Block Severity = preflight.Block // "block": the migration would fail or could lose rows
	Warn  Severity = preflight.Warn  // "warn": decide before the migration
	Info  Severity = preflight.Info  // "info": information
)

// Code names a kind of finding, for programs.
type Code string

// The codes.
const (
	Unsupported      Code = preflight.Unsupported      // "unsupported": the table cannot be migrated
	OutsideJob       Code = preflight.OutsideJob       // "outside_job": a foreign key, view, trigger or group connects the job's tables with others
	ForeignTriggers  Code = preflight.ForeignTriggers  // "triggers": the table has triggers of its own
	Cascades         Code = preflight.Cascades         // "cascades": foreign keys change rows of the table by themselves
	UniqueAcross     Code = preflight.UniqueAcross     // "unique_key": a unique key without the sharding key holds only within each shard
	NoShardingKey    Code = preflight.NoShardingKey    // "no_sharding_key": the sharding key is not a column, or NULL in a row
	ZeroShardingKey  Code = preflight.ZeroShardingKey  // "zero_sharding_key": the sharding key is 0 in some rows
	Unplaced         Code = preflight.Unplaced         // "unplaced": the rule has no place for a row of the table
	Collation        Code = preflight.Collation        // "collation": the collation of the sharding key treats texts as equal that the rule distinguishes
	KeyColumn        Code = preflight.KeyColumn        // "key_column": type, precision or time zone of the sharding key's column do not fit the rule
	NarrowKey        Code = preflight.NarrowKey        // "narrow_key": the key's type is narrower than the shards' BIGINT
	RangeUsed        Code = preflight.RangeUsed        // "range_used": half of the key's range is used
	NonPositiveID    Code = preflight.NonPositiveID    // "non_positive_id": an id of 0 or below exists
	GeneratedColumns Code = preflight.GeneratedColumns // "generated_columns": columns that each database computes by itself
	ComputedID       Code = preflight.ComputedID       // "computed_id": an expression over an id fails or differs where ids are BIGINT, as on the shards
	OtherCounter     Code = preflight.OtherCounter     // "auto_increment": the table numbers another column than its key
	LostValue        Code = preflight.LostValue        // "lost_value": a value that a copy would change
	ImplicitDefaults Code = preflight.ImplicitDefaults // "implicit_defaults": a shard's server gives TIMESTAMP columns defaults that the source's do not have
	InvisibleColumns Code = preflight.InvisibleColumns // "invisible_columns": columns that SELECT * does not show
	Checks           Code = preflight.Checks           // "checks": CHECK constraints, which copied rows have to pass
	LongName         Code = preflight.LongName         // "long_name": a constraint could not be renamed along with the table
	Partitions       Code = preflight.Partitions       // "partitions": the table is partitioned
	RowFormat        Code = preflight.RowFormat        // "row_format": a shard's server refuses to create the table under innodb_strict_mode
	Charset          Code = preflight.Charset          // "charset": a character set other than utf8mb4
	Privileges       Code = preflight.Privileges       // "privileges": the user may lack a privilege
	TriggersRefused  Code = preflight.TriggersRefused  // "triggers_refused": the server lets only SUPER create triggers (error 1419)
	BinlogFormat     Code = preflight.BinlogFormat     // "binlog_format": binlog_format refuses writes under READ COMMITTED
	LongTransactions Code = preflight.LongTransactions // "long_transactions": a switch would wait for them
	Prepared         Code = preflight.Prepared         // "prepared": XA transactions that may commit at any time
	LaxMode          Code = preflight.LaxMode          // "sql_mode": the application's sql_mode accepts wrong values
	Durability       Code = preflight.Durability       // "durability": a crash can lose commits
	Settings         Code = preflight.Settings         // "settings": connections to a shard begin with other settings than those to the source
	PacketSize       Code = preflight.PacketSize       // "packet_size": a shard accepts shorter statements than the source
	Journal          Code = preflight.Journal          // "journal": a SQLite file whose readers and writers wait for each other
	Size             Code = preflight.Size             // "size": the disk space that the shards need
	Unreachable      Code = preflight.Unreachable      // "unreachable": a database does not answer
	SameTable        Code = preflight.SameTable        // "same_table": a table of a shard is the source's table
	NameTaken        Code = preflight.NameTaken        // "name_taken": another table has the name that the switch gives to a table
	NotEmpty         Code = preflight.NotEmpty         // "not_empty": a table of a shard has rows that no job wrote
	Misfit           Code = preflight.Misfit           // "misfit": a table of a shard cannot take the rows: another column, key or type
	OtherJob         Code = preflight.OtherJob         // "other_job": a table of the source or of a shard belongs to another job
	Replica          Code = preflight.Replica          // "replica": rows may come from another server, which runs no triggers
	InCluster        Code = preflight.InCluster        // "cluster": other members of a cluster write despite the lock
	ReadOnly         Code = preflight.ReadOnly         // "read_only": the server accepts no writes
	ForeignDefault   Code = preflight.ForeignDefault   // "sequence": a default uses a sequence, which the shards' databases do not have
	Switched         Code = preflight.Switched         // "switched": the shards serve
	Relations        Code = preflight.Relations        // "relations": the tables' references do not lead to the sharding key, or contradict each other
	NoNewID          Code = preflight.NoNewID          // "no_new_id": an id has no new id
)

// Blocked reports whether one of the findings blocks the migration.
func Blocked(findings []Finding) bool {
	for _, f := range findings {
		if f.Severity == Block {
			return true
		}
	}
	return false
}

// Inspect finds what would stop a migration or cause surprises during it, and changes
// nothing. It reads definitions, settings and the lowest and highest ids of each table, and
// counts the rows whose sharding key is NULL or 0, which reads the whole table where that
// column has no index. Under a rule that does not place every integer it tries the lowest,
// the highest and up to 1000 other values. It reads a table once for values that a copy
// would change, if the table has an ENUM, a SET with an empty member, JSON in MySQL, a NOT
// NULL geometry or vector, or texts in character sets other than latin1, ASCII and Unicode's. Expressions over an id are
// computed for the lowest and the highest one of the table, and for higher ones. It tests by temporary tables whether servers with
// shards would create their tables, where the user may create these. The worst findings
// come first.
//
// A database with shards that does not answer is a finding; the source must answer.
// Config.Observe is called after each reading of a table.
func (j *Job) Inspect(ctx context.Context) ([]Finding, error) {
	found, err := preflight.Inspect(ctx, j.cfg.known(), j.cfg.inspected)
	if err != nil {
		return nil, err
	}
	return findingsOf(found), nil
}

func findingsOf(found []preflight.Finding) []Finding {
	all := make([]Finding, len(found))
	for i, f := range found {
		all[i] = Finding{Code(f.Code), Severity(f.Severity), f.Database, f.Table, f.Message, f.Fix}
	}
	return all
}
