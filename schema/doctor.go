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
	// MaxRows is how many rows of each physical table are looked at, whichever
	// the database gives first. Defaults to 1,000,000; negative means all.
	MaxRows int64
	// Timeout is how long one physical table, or connecting to one database, may
	// take. Defaults to one minute.
	Timeout time.Duration
	// Children are logical tables whose rows lie where those of another table do,
	// and do not say so themselves. Such a table is looked at, its rows are not. A
	// name that the router does not know means nothing. Defaults to none.
	Children []string
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

	Rows      int64 `json:"rows"`      // looked at
	All       bool  `json:"all"`       // there are no others
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

// Example is a row by its sharding key, and the place where it belongs.
type Example struct {
	Key     string `json:"key"`
	Belongs string `json:"belongs,omitempty"` // "database/table"; empty when no place can be told
}

// The codes of findings that Doctor makes.
const (
	Unreachable      Code = "unreachable"        // the database does not answer
	NotChecked       Code = "not_checked"        // the time was over, or a statement failed
	PartlyChecked    Code = "partly_checked"     // there are more rows than MaxRows
	MissingTable     Code = "missing_table"      // a physical table does not exist
	MissingColumn    Code = "missing_column"     // the key's, or one that the other shards have
	ColumnDiffers    Code = "column_differs"     // its type is not that of the other shards
	ExtraColumn      Code = "extra_column"       // most other shards do not have it
	MissingIndex     Code = "missing_index"      // most other shards have it
	ExtraIndex       Code = "extra_index"        // most other shards do not have it
	MisplacedRows    Code = "misplaced_rows"     // rows that the router looks for elsewhere
	UnplaceableRows  Code = "unplaceable_rows"   // rows whose key is NULL or no key of the rule
	Collation        Code = "collation"          // the key's takes texts for equal that the rule tells apart
	KeyColumn        Code = "key_column"         // the type, precision or zone of the key's is not what the rule takes
	GeneDiffers      Code = "gene_differs"       // another column leads to another slot than the key
	ShardNumbersRows Code = "shard_numbers_rows" // AUTO_INCREMENT in a shard, beside the rule
	WrongNumbering   Code = "wrong_numbering"    // step or offset are not those of the rule
	EpochUnarmed     Code = "epoch_unarmed"      // a server does not number as the last epoch says
	StrayTable       Code = "stray_table"        // called like a shard, but the router does not know it
	UnguardedNode    Code = "unguarded_node"     // WORKER_NODE gives worker ids, and nothing notices a database that forgot some
	NodeSteps        Code = "node_steps"         // WORKER_NODE leaves worker ids out
	// UnguardedSegments: leaf_alloc, tiny_id_info or cosid is in use, and nothing notices
	// a database that forgot rows.
	UnguardedSegments Code = "unguarded_segments"
	LogicalTable      Code = "logical_table" // a physical table that bears the logical name
	// LookupMissing and LookupLeftOver are about lookup tables, which shardid doctor
	// compares with lookups.Verify: rows without an entry, and entries without a row.
	LookupMissing  Code = "lookup_missing"
	LookupLeftOver Code = "lookup_left_over"
)

// Doctor looks at every database and physical table of the router, and says which
// rows lie where nobody looks for them, in what the shards of a table differ,
// which tables are missing or too many, whether tables number their rows as the
// rule says, whether the columns of keys keep and compare them as the rules take
// them, and which databases do not answer. Where one of the databases holds a
// WORKER_NODE, leaf_alloc, tiny_id_info or cosid in use, it says whether its ids are
// guarded against a fail-over, and where worker ids rise in steps. It writes nothing.
//
// What cannot be looked at is a finding, too, and not an error of Doctor: only a
// context that ends is. The databases are looked at side by side, on one
// connection of each, their tables one after the other. Rows that move
// meanwhile may be found in neither place or in both.
func Doctor(ctx context.Context, r *sharding.Router, c DoctorConfig) (Diagnosis, error) {
	wards := rounds(r, c.withDefaults())
	var wg sync.WaitGroup
	for _, w := range wards {
		wg.Go(func() { w.visit(ctx) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Diagnosis{}, fmt.Errorf("schema: doctor: %w", err)
	}
	return diagnose(r, wards), nil
}

// rounds returns the wards, by the name of their database.
func rounds(r *sharding.Router, c DoctorConfig) []*ward {
	byName := map[string]*ward{}
	add := func(p *patient) {
		w := byName[p.Database]
		if w == nil {
			w = &ward{name: p.Database, db: r.DB(p.Database), config: c}
			byName[p.Database] = w
		}
		w.patients = append(w.patients, p)
	}
	for _, t := range r.Tables() {
		for _, target := range t.Map.Targets() {
			add(&patient{Checkup: Checkup{Place: Place{t.Name, target.DB, target.Table}}, table: &t})
		}
	}
	var wards []*ward
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		wards = append(wards, byName[name])
	}
	for _, w := range wards {
		for _, name := range r.Broadcasts() {
			w.patients = append(w.patients, &patient{Checkup: Checkup{Place: Place{name, w.name, name}}})
		}
	}
	return wards
}

// diagnose puts together what the wards found, in the router's order.
func diagnose(r *sharding.Router, wards []*ward) Diagnosis {
	d := Diagnosis{Targets: []Checkup{}, Findings: []ShardFinding{}} // [] in JSON
	for _, w := range wards {
		d.Findings = append(d.Findings, w.findings...)
	}
	for _, name := range tableNames(r) {
		patients := patientsOf(wards, name)
		for _, p := range patients {
			d.Targets = append(d.Targets, p.Checkup)
			d.Findings = append(d.Findings, p.findings...)
		}
		d.Findings = append(d.Findings, drift(patients)...)
		d.Findings = append(d.Findings, unarmed(patients)...)
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

func patientsOf(wards []*ward, table string) []*patient {
	var all []*patient
	for _, w := range wards {
		for _, p := range w.patients {
			if p.Table == table {
				all = append(all, p)
			}
		}
	}
	return all
}

func rank(s Severity) int { return slices.Index([]Severity{Error, Warning, Info}, s) }
