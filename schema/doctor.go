// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shardid/shardid/sharding"
)

// DoctorConfig bounds the work of Doctor.
type DoctorConfig struct {
	// MaxRows is how many rows of each physical table are checked; the database chooses which.
	// Defaults to 1,000,000; negative means all.
	MaxRows int64
	// Timeout is how long one physical table, or connecting to one database, may
	// take. Defaults to one minute.
	Timeout time.Duration
	// Children are logical tables whose rows lie in the shard of a parent row, and have no
	// sharding key of their own. The definition of such a table is checked, its rows are not.
	// A name that the router does not know is ignored. Defaults to none.
	Children []string
	// Observe is called after each physical table, with how many tables are done and how many
	// there are. Several goroutines call it, one at a time. Defaults to no call.
	Observe func(done, all int)
}

func (c DoctorConfig) withDefaults() DoctorConfig {
	if c.MaxRows == 0 {
		c.MaxRows = 1_000_000
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	return c
}

// Diagnosis is what Doctor found. Its JSON form is stable: fields and codes may
// be added, none changes its meaning.
type Diagnosis struct {
	Targets  []Checkup      `json:"targets"` // by logical table, then in slot order
	Findings []ShardFinding `json:"findings"`
}

// Healthy reports whether no finding is an error.
func (d Diagnosis) Healthy() bool {
	return !slices.ContainsFunc(d.Findings, func(f ShardFinding) bool { return f.Severity == Error })
}

// Checkup is one physical table and how many of its rows were looked at.
type Checkup struct {
	Place

	Rows      int64 `json:"rows"`      // checked
	All       bool  `json:"all"`       // Rows are all rows of the table
	Misplaced int64 `json:"misplaced"` // of Rows
}

// Place is a physical table, or a database when Physical is empty.
type Place struct {
	Table    string `json:"table,omitempty"` // logical name
	Database string `json:"database"`        // its name in the router
	Physical string `json:"physical,omitempty"`
}

// String returns "database/physical".
func (p Place) String() string {
	if p.Physical == "" {
		return p.Database
	}
	return p.Database + "/" + p.Physical
}

// ShardFinding is a finding and where it was made.
type ShardFinding struct {
	Finding
	Place

	Examples []Example `json:"examples,omitempty"` // a few of the rows, if it is about rows
}

// Example is a row by its sharding key, and the place where it belongs; or by its value of the column that the finding names.
type Example struct {
	Key     string `json:"key"`
	Belongs string `json:"belongs,omitempty"` // "database/table"; empty when the rule gives none
}

// The codes of findings that Doctor makes.
const (
	Unreachable      Code = "unreachable"        // the database does not answer
	NotChecked       Code = "not_checked"        // the time limit was reached, or a statement failed
	PartlyChecked    Code = "partly_checked"     // there are more rows than MaxRows
	MissingTable     Code = "missing_table"      // a physical table does not exist
	MissingColumn    Code = "missing_column"     // the key's, or one that the other shards have
	ColumnDiffers    Code = "column_differs"     // its type is not that of the other shards
	ExtraColumn      Code = "extra_column"       // most other shards do not have it
	ColumnOrder      Code = "column_order"       // a column has another place than in most other shards
	MissingIndex     Code = "missing_index"      // most other shards have it
	ExtraIndex       Code = "extra_index"        // most other shards do not have it
	MisplacedRows    Code = "misplaced_rows"     // rows that the router looks for in another table
	UnplaceableRows  Code = "unplaceable_rows"   // rows whose key is NULL or no key of the rule
	Collation        Code = "collation"          // the key's collation treats texts as equal that the rule distinguishes
	KeyColumn        Code = "key_column"         // type, precision or time zone of the key's column do not fit the rule
	MissingParent    Code = "missing_parent"     // rows that refer, by one of Table.Parents, to a row that is not on their shard
	GeneDiffers      Code = "gene_differs"       // another column leads to another slot than the key
	ShardNumbersRows Code = "shard_numbers_rows" // AUTO_INCREMENT in a shard, beside the rule
	WrongNumbering   Code = "wrong_numbering"    // step or offset are not those of the rule
	EpochUnarmed     Code = "epoch_unarmed"      // a server does not number rows as the last epoch requires
	StrayTable       Code = "stray_table"        // has the name of a shard, but the router does not know it
	UnguardedNode    Code = "unguarded_node"     // WORKER_NODE gives worker ids, and nothing detects a database that has lost some
	NodeSteps        Code = "node_steps"         // WORKER_NODE leaves worker ids out
	// UnguardedSegments: leaf_alloc, tiny_id_info or cosid is in use, and nothing detects a
	// database that has lost rows.
	UnguardedSegments Code = "unguarded_segments"
	LogicalTable      Code = "logical_table" // a table that has the name of the logical table
	// LookupMissing, LookupDuplicate and LookupLeftOver are about lookup tables, which shardid doctor
	// compares with lookups.Verify: rows without an entry, rows with the unique value of another row,
	// and entries without a row.
	LookupMissing   Code = "lookup_missing"
	LookupDuplicate Code = "lookup_duplicate"
	LookupLeftOver  Code = "lookup_left_over"
)

// Doctor checks every database and physical table of the router. It reports misplaced rows,
// rows whose parents are not on their shard, differences between the shards of a table, missing
// and surplus tables, tables that do not number their rows as the rule requires, key columns that
// do not keep or compare values as the rule does, unique keys that hold within each shard only
// (UniqueKey), and databases that do not answer. Where a
// database holds a WORKER_NODE, leaf_alloc, tiny_id_info or cosid in use, it reports whether its
// ids are guarded against a failover, and whether worker ids rise in steps. It writes nothing.
//
// A table or database that cannot be checked is a finding; Doctor returns an error only
// when ctx ends. The databases are checked concurrently, on one connection each, their
// tables one after the other. Rows that move meanwhile may be found in neither place or in
// both.
func Doctor(ctx context.Context, r *sharding.Router, c DoctorConfig) (Diagnosis, error) {
	scans := plannedScans(r, c.withDefaults())
	done := countTables(scans, c.Observe)
	var wg sync.WaitGroup
	for _, db := range scans {
		wg.Go(func() { db.run(ctx, done) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Diagnosis{}, fmt.Errorf("schema: doctor: %w", err)
	}
	return diagnose(r, scans), nil
}

// countTables returns the function that is called after each table of the scans.
func countTables(scans []*databaseScan, observe func(done, all int)) func() {
	if observe == nil {
		return func() {}
	}
	all, done := 0, 0
	for _, db := range scans {
		all += len(db.tables)
	}
	var mu sync.Mutex
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		observe(done, all)
	}
}

// plannedScans returns the scans, by the name of their database.
func plannedScans(r *sharding.Router, c DoctorConfig) []*databaseScan {
	byName := map[string]*databaseScan{}
	add := func(scan *tableScan) {
		db := byName[scan.Database]
		if db == nil {
			db = &databaseScan{name: scan.Database, db: r.DB(scan.Database), config: c}
			byName[scan.Database] = db
		}
		db.tables = append(db.tables, scan)
	}
	for _, t := range r.Tables() {
		for _, target := range t.Map.Targets() {
			add(&tableScan{Checkup: Checkup{Place: Place{t.Name, target.DB, target.Table}}, table: &t})
		}
	}
	var scans []*databaseScan
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		scans = append(scans, byName[name])
	}
	for _, db := range scans {
		for _, name := range r.Broadcasts() {
			db.tables = append(db.tables, &tableScan{Checkup: Checkup{Place: Place{name, db.name, name}}})
		}
	}
	return scans
}

// diagnose merges the results of the scans, in the router's order.
func diagnose(r *sharding.Router, scans []*databaseScan) Diagnosis {
	d := Diagnosis{Targets: []Checkup{}, Findings: []ShardFinding{}} // [] in JSON
	for _, db := range scans {
		d.Findings = append(d.Findings, db.findings...)
	}
	for _, name := range tableNames(r) {
		tables := tablesOf(scans, name)
		for _, scan := range tables {
			d.Targets = append(d.Targets, scan.Checkup)
			d.Findings = append(d.Findings, scan.findings...)
		}
		d.Findings = append(d.Findings, drift(tables)...)
		d.Findings = append(d.Findings, unarmed(tables)...)
	}
	slices.SortStableFunc(d.Findings, func(a, b ShardFinding) int { return rank(a.Severity) - rank(b.Severity) })
	return d
}

func tableNames(r *sharding.Router) []string {
	var names []string
	for _, t := range r.Tables() {
		names = append(names, t.Name)
	}
	return append(names, r.Broadcasts()...)
}

func tablesOf(scans []*databaseScan, table string) []*tableScan {
	var all []*tableScan
	for _, db := range scans {
		for _, scan := range db.tables {
			if scan.Table == table {
				all = append(all, scan)
			}
		}
	}
	return all
}

func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Info}, s) }
