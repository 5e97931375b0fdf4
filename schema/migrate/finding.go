package migrate

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
	Block Severity = "block" // the migration would fail or could lose rows
	Warn  Severity = "warn"  // decide about it first
	Info  Severity = "info"  // good to know
)

// Code names a kind of finding, for programs.
type Code string

// The codes.
const (
	Unsupported      Code = "unsupported"       // the table is none that can be migrated
	OutsideJob       Code = "outside_job"       // a foreign key, view or trigger connects the job's tables with others
	ForeignTriggers  Code = "triggers"          // the table has triggers of its own
	Cascades         Code = "cascades"          // foreign keys change rows of the table by themselves
	UniqueAcross     Code = "unique_key"        // a unique key without the sharding key holds in each shard alone
	NoShardingKey    Code = "no_sharding_key"   // the sharding key is no column, or NULL in some row
	ZeroShardingKey  Code = "zero_sharding_key" // the sharding key is 0 in some rows
	Unplaced         Code = "unplaced"          // the rule has no place for a row of the table
	Collation        Code = "collation"         // the sharding key's takes texts for equal that the rule tells apart
	KeyColumn        Code = "key_column"        // the type, precision or zone of the sharding key's is not what the rule takes
	NarrowKey        Code = "narrow_key"        // the key's type is narrower than the shards' BIGINT
	RangeUsed        Code = "range_used"        // half of the key's range is used
	NonPositiveID    Code = "non_positive_id"   // an id of 0 or below exists
	GeneratedColumns Code = "generated_columns" // columns that each database computes by itself
	OtherCounter     Code = "auto_increment"    // the table numbers another column than its key
	LostValue        Code = "lost_value"        // a value that a copy would change
	ImplicitDefaults Code = "implicit_defaults" // a shard's server gives TIMESTAMP columns defaults that the source's do not have
	InvisibleColumns Code = "invisible_columns" // columns that SELECT * does not show
	Checks           Code = "checks"            // CHECK constraints, which copied rows have to pass
	Partitions       Code = "partitions"        // the table is partitioned
	RowFormat        Code = "row_format"        // a shard's server does not make the table under innodb_strict_mode
	Charset          Code = "charset"           // a character set other than utf8mb4
	Privileges       Code = "privileges"        // the user may lack a privilege
	TriggersRefused  Code = "triggers_refused"  // the server lets only SUPER create triggers (error 1419)
	BinlogFormat     Code = "binlog_format"     // the binary log takes no statements of our isolation level
	LongTransactions Code = "long_transactions" // a switch would wait for them
	Prepared         Code = "prepared"          // XA transactions that may commit at any time
	LaxMode          Code = "sql_mode"          // the application's sql_mode lets wrong values in
	Durability       Code = "durability"        // what was committed can be lost in a crash
	PacketSize       Code = "packet_size"       // a shard takes shorter statements than the source
	Journal          Code = "journal"           // a SQLite file whose readers and writers wait for each other
	Size             Code = "size"              // what the shards need on disk
	Unreachable      Code = "unreachable"       // a database does not answer
	SameTable        Code = "same_table"        // a table of a shard is the source's own
	NotEmpty         Code = "not_empty"         // a table of a shard has rows that are no job's
	OtherJob         Code = "other_job"         // a table, or one of a shard, is another job's
	Replica          Code = "replica"           // rows may come from another server, which runs no triggers
	InCluster        Code = "cluster"           // other members write where no lock reaches
	ReadOnly         Code = "read_only"         // the server takes no writes
	ForeignDefault   Code = "sequence"          // a default takes from a sequence, which the shards' databases do not have
	Switched         Code = "switched"          // the shards serve
	Relations        Code = "relations"         // the way to the sharding key, or references that change, do not hold together
	NoNewID          Code = "no_new_id"         // an id cannot be turned into a new one
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
