// SPDX-License-Identifier: Apache-2.0

package schema

// Report is what Inspect found. Its JSON form is stable: fields and codes may
// be added, none changes its meaning.
type Report struct {
	Dialect string  `json:"dialect"` // "mysql" (which includes MariaDB), "postgres" or "sqlite"
	Server  Server  `json:"server"`
	Tables  []Table `json:"tables"` // by name
}

// Server is the database product and the version as it calls it itself.
type Server struct {
	Product string `json:"product"` // "MySQL", "MariaDB", "TiDB", "Vitess", "PostgreSQL" or "SQLite"
	Version string `json:"version"`
}

// Table is one base table.
type Table struct {
	Name        string       `json:"name"`
	Key         *Key         `json:"key"`         // nil unless the primary key is a single integer column
	PrimaryKey  []string     `json:"primary_key"` // its columns in the key's order; empty when there is none
	ForeignKeys []ForeignKey `json:"foreign_keys"`
	Findings    []Finding    `json:"findings"`
}

// Key is a primary key of one integer column and how far it is used.
type Key struct {
	Column        string `json:"column"`
	Type          string `json:"type"` // as the database says it, without a width: "int", "INTEGER"
	Unsigned      bool   `json:"unsigned"`
	AutoIncrement bool   `json:"auto_increment"` // the table numbers new rows by itself
	Max           uint64 `json:"max"`            // the largest value of the type
	// Highest is the highest id in the table, nil when it is empty. Ids above
	// the largest int64 show as that, with the finding BeyondInt64.
	Highest *int64 `json:"highest"`
	// Next is the lowest id, at least 1, that is above every id in the table
	// and that the table has not yet given by itself. It is Max+1 when the
	// range is used up.
	Next        uint64  `json:"next"`
	PercentUsed float64 `json:"percent_used"` // of 1 to Max, two decimals
}

// ForeignKey is a reference to another table, or to the same one.
type ForeignKey struct {
	Name              string   `json:"name,omitempty"` // SQLite does not tell names
	Columns           []string `json:"columns"`
	References        string   `json:"references"`         // the table; "database.table" when in another database, or schema
	ReferencedColumns []string `json:"referenced_columns"` // in the order of Columns
	OnDelete          string   `json:"on_delete"`          // "CASCADE", "NO ACTION", …
	OnUpdate          string   `json:"on_update"`
}

func (k *ForeignKey) add(column, referenced string) {
	k.Columns = append(k.Columns, column)
	k.ReferencedColumns = append(k.ReferencedColumns, referenced)
}

// Finding is something to know or to do before a table is sharded.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"` // what is the case
	Fix      string   `json:"fix"`     // what to do
}

// Severity says what a finding asks for.
type Severity string

// The severities.
const (
	Info    Severity = "info"    // good to know
	Warning Severity = "warning" // decide about it before the table is sharded
	Error   Severity = "error"   // the table cannot be sharded by its key, or it is about to stop taking rows
)

// Code names a kind of finding, for programs.
type Code string

// The codes.
const (
	NoPrimaryKey    Code = "no_primary_key"
	CompositeKey    Code = "composite_key"
	NonIntegerKey   Code = "non_integer_key"   // by type, or a value in SQLite that is no integer
	NarrowKey       Code = "narrow_key"        // the type holds fewer than 63 bits
	RangeUsed       Code = "range_used"        // half of the type's range is used (warning), or four fifths (error)
	NarrowSequence  Code = "narrow_sequence"   // the sequence ends before the type does (warning), or four fifths of it are used (error)
	NonPositiveID   Code = "non_positive_id"   // an id of 0 or below exists
	BeyondInt64     Code = "beyond_int64"      // an unsigned id above the largest int64 exists
	NoAutoIncrement Code = "no_auto_increment" // the application gives the ids already
	ReusesIDs       Code = "reuses_ids"        // a new row may get the id of a deleted one
	NotInnoDB       Code = "not_innodb"        // an engine without transactions
	UniqueKey       Code = "unique_key"        // a unique key, beside the primary one, that only one database can check
	LookupTable     Code = "lookup_table"      // it is probably a lookup table of package lookups
)
