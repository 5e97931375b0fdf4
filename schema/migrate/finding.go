// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"

	"github.com/shardid/shardid/schema/internal/preflight"
)

// Finding is something to know, to decide or to mend before a migration. Its
// JSON form is stable: codes may be added, none changes its meaning.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Database string   `json:"database"`        // "source" or the name of a shard's database
	Table    string   `json:"table,omitempty"` // "" when it is about the database
	Message  string   `json:"message"`         // what is the case
	Fix      string   `json:"fix"`             // what to do
}

// Severity says what a finding asks for.
type Severity string

// The severities.
const (
	Block Severity = preflight.Block // "block": the migration would fail or could lose rows
	Warn  Severity = preflight.Warn  // "warn": decide about it first
	Info  Severity = preflight.Info  // "info": good to know
)

// Code names a kind of finding, for programs.
type Code string

// The codes.
const (
	Unsupported      Code = preflight.Unsupported      // "unsupported": the table is none that can be migrated
	OutsideJob       Code = preflight.OutsideJob       // "outside_job": a foreign key, view or trigger connects the job's tables with others
	ForeignTriggers  Code = preflight.ForeignTriggers  // "triggers": the table has triggers of its own
	Cascades         Code = preflight.Cascades         // "cascades": foreign keys change rows of the table by themselves
	UniqueAcross     Code = preflight.UniqueAcross     // "unique_key": a unique key without the sharding key holds in each shard alone
	NoShardingKey    Code = preflight.NoShardingKey    // "no_sharding_key": the sharding key is no column, or NULL in some row
	ZeroShardingKey  Code = preflight.ZeroShardingKey  // "zero_sharding_key": the sharding key is 0 in some rows
	Unplaced         Code = preflight.Unplaced         // "unplaced": the rule has no place for a row of the table
	Collation        Code = preflight.Collation        // "collation": the sharding key's takes texts for equal that the rule tells apart
	KeyColumn        Code = preflight.KeyColumn        // "key_column": the type, precision or zone of the sharding key's is not what the rule takes
	NarrowKey        Code = preflight.NarrowKey        // "narrow_key": the key's type is narrower than the shards' BIGINT
	RangeUsed        Code = preflight.RangeUsed        // "range_used": half of the key's range is used
	NonPositiveID    Code = preflight.NonPositiveID    // "non_positive_id": an id of 0 or below exists
	GeneratedColumns Code = preflight.GeneratedColumns // "generated_columns": columns that each database computes by itself
	OtherCounter     Code = preflight.OtherCounter     // "auto_increment": the table numbers another column than its key
	LostValue        Code = preflight.LostValue        // "lost_value": a value that a copy would change
	ImplicitDefaults Code = preflight.ImplicitDefaults // "implicit_defaults": a shard's server gives TIMESTAMP columns defaults that the source's do not have
	InvisibleColumns Code = preflight.InvisibleColumns // "invisible_columns": columns that SELECT * does not show
	Checks           Code = preflight.Checks           // "checks": CHECK constraints, which copied rows have to pass
	LongName         Code = preflight.LongName         // "long_name": a constraint could not be renamed along with the table
	Partitions       Code = preflight.Partitions       // "partitions": the table is partitioned
	RowFormat        Code = preflight.RowFormat        // "row_format": a shard's server does not make the table under innodb_strict_mode
	Charset          Code = preflight.Charset          // "charset": a character set other than utf8mb4
	Privileges       Code = preflight.Privileges       // "privileges": the user may lack a privilege
	TriggersRefused  Code = preflight.TriggersRefused  // "triggers_refused": the server lets only SUPER create triggers (error 1419)
	BinlogFormat     Code = preflight.BinlogFormat     // "binlog_format": the binary log takes no statements of our isolation level
	LongTransactions Code = preflight.LongTransactions // "long_transactions": a switch would wait for them
	Prepared         Code = preflight.Prepared         // "prepared": XA transactions that may commit at any time
	LaxMode          Code = preflight.LaxMode          // "sql_mode": the application's sql_mode lets wrong values in
	Durability       Code = preflight.Durability       // "durability": what was committed can be lost in a crash
	PacketSize       Code = preflight.PacketSize       // "packet_size": a shard takes shorter statements than the source
	Journal          Code = preflight.Journal          // "journal": a SQLite file whose readers and writers wait for each other
	Size             Code = preflight.Size             // "size": what the shards need on disk
	Unreachable      Code = preflight.Unreachable      // "unreachable": a database does not answer
	SameTable        Code = preflight.SameTable        // "same_table": a table of a shard is the source's own
	NotEmpty         Code = preflight.NotEmpty         // "not_empty": a table of a shard has rows that are no job's
	OtherJob         Code = preflight.OtherJob         // "other_job": a table, or one of a shard, is another job's
	Replica          Code = preflight.Replica          // "replica": rows may come from another server, which runs no triggers
	InCluster        Code = preflight.InCluster        // "cluster": other members write where no lock reaches
	ReadOnly         Code = preflight.ReadOnly         // "read_only": the server takes no writes
	ForeignDefault   Code = preflight.ForeignDefault   // "sequence": a default takes from a sequence, which the shards' databases do not have
	Switched         Code = preflight.Switched         // "switched": the shards serve
	Relations        Code = preflight.Relations        // "relations": the way to the sharding key, or references that change, do not hold together
	NoNewID          Code = preflight.NoNewID          // "no_new_id": an id cannot be turned into a new one
)

// Blocked reports whether one of the findings stands in the way.
func Blocked(findings []Finding) bool {
	for _, f := range findings {
		if f.Severity == Block {
			return true
		}
	}
	return false
}

// Inspect looks for what would stop a migration or surprise somebody in the
// middle of it, and changes nothing. It reads definitions and settings, the
// ends of each table's ids, and counts the rows whose sharding key is NULL or 0,
// which takes as long as reading the table where that column has no index. Under a
// rule without a place for every integer it tries the lowest, the highest and up
// to 1000 other values. A table with an ENUM, with JSON in MySQL, or with texts of
// older character sets than latin1 and Unicode's, is read once for values that a copy
// would change. A server with shards is asked whether it would make their tables by
// temporary ones, where the user may create them. What was found worst comes first.
//
// A database with shards that does not answer is a finding; the source has to.
// Config.Observe is told of each reading of a table.
func (j *Job) Inspect(ctx context.Context) ([]Finding, error) {
	found, err := preflight.Inspect(ctx, j.cfg.known(), j.cfg.inspected)
	if err != nil {
		return nil, err
	}
	all := make([]Finding, len(found))
	for i, f := range found {
		all[i] = Finding{Code(f.Code), Severity(f.Severity), f.Database, f.Table, f.Message, f.Fix}
	}
	return all, nil
}
