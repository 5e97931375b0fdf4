// SPDX-License-Identifier: Apache-2.0

package preflight

// Finding is an obstacle, a decision or a hint before a migration. Package migrate
// documents it and its codes.
type Finding struct {
	Code, Severity  string
	Database, Table string
	Message, Fix    string
	Err             error // why a database cannot be inspected; nil for other findings
}

// The severities and the codes.
const (
	Block            = "block"
	Warn             = "warn"
	Info             = "info"
	Unsupported      = "unsupported"
	OutsideJob       = "outside_job"
	ForeignTriggers  = "triggers"
	Cascades         = "cascades"
	UniqueAcross     = "unique_key"
	NoShardingKey    = "no_sharding_key"
	ZeroShardingKey  = "zero_sharding_key"
	Unplaced         = "unplaced"
	Collation        = "collation"
	KeyColumn        = "key_column"
	NarrowKey        = "narrow_key"
	RangeUsed        = "range_used"
	NonPositiveID    = "non_positive_id"
	GeneratedColumns = "generated_columns"
	ComputedID       = "computed_id"
	OtherCounter     = "auto_increment"
	LostValue        = "lost_value"
	ImplicitDefaults = "implicit_defaults"
	InvisibleColumns = "invisible_columns"
	Checks           = "checks"
	LongName         = "long_name"
	Partitions       = "partitions"
	RowFormat        = "row_format"
	Charset          = "charset"
	Privileges       = "privileges"
	TriggersRefused  = "triggers_refused"
	BinlogFormat     = "binlog_format"
	LongTransactions = "long_transactions"
	Prepared         = "prepared"
	LaxMode          = "sql_mode"
	Durability       = "durability"
	PacketSize       = "packet_size"
	Settings         = "settings"
	Journal          = "journal"
	Size             = "size"
	Unreachable      = "unreachable"
	SameTable        = "same_table"
	NameTaken        = "name_taken"
	NotEmpty         = "not_empty"
	Misfit           = "misfit"
	OtherJob         = "other_job"
	Replica          = "replica"
	InCluster        = "cluster"
	ReadOnly         = "read_only"
	ForeignDefault   = "sequence"
	Switched         = "switched"
	Relations        = "relations"
	NoNewID          = "no_new_id"
)
