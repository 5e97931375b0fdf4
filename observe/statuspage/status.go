// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/schema/migrate"
)

// Status is the content of the page and of status.json. Durations are in seconds.
type Status struct {
	Time       time.Time      `json:"time"`
	Health     observe.Health `json:"health"`
	Generators []Generator    `json:"generators"`
	Statements []Statement    `json:"statements"`
	Tags       []Tag          `json:"tags"`
	Leases     []Lease        `json:"leases"`
	Tables     []Table        `json:"tables"`
	Migrations []Job          `json:"migrations"`
	Decoded    *Decoded       `json:"decoded,omitempty"` // the id of the parameter id
	// Errors say which parts could not be collected, and why.
	Errors []string `json:"errors"`
}

// Generator describes a generator.
type Generator struct {
	Name         string     `json:"name"`
	Issued       int64      `json:"issued"`
	Waits        int64      `json:"waits"`
	Failures     int64      `json:"failures"`
	Rate         float64    `json:"rate"`                   // ids per second lately, if it is measured
	Remaining    int64      `json:"remaining"`              // in memory
	Left         *float64   `json:"left,omitempty"`         // seconds without the source; nil means without limit
	Worker       *int64     `json:"worker,omitempty"`       //
	LeasedUntil  *time.Time `json:"leased_until,omitempty"` //
	LayoutEnds   *time.Time `json:"layout_ends,omitempty"`  //
	Layout       string     `json:"layout,omitempty"`       //
	Reservations int64      `json:"reservations"`
	Failed       int64      `json:"failed_reservations"`
	LastError    string     `json:"last_error,omitempty"`
}

// Statement has the counts of statements with the same labels.
type Statement struct {
	Table   string  `json:"table"`
	Kind    string  `json:"kind"`
	Outcome string  `json:"outcome"`
	Count   uint64  `json:"count"`
	Mean    float64 `json:"mean"`
}

// Tag is a row of leaf_alloc.
type Tag struct {
	Tag       string  `json:"tag"`
	Next      int64   `json:"next"`
	Step      int64   `json:"step"`
	Unchanged float64 `json:"unchanged"`
}

// Lease is a row of worker_lease.
type Lease struct {
	Namespace  string  `json:"namespace"`
	Layout     string  `json:"layout"`
	Worker     int64   `json:"worker"`
	Holder     string  `json:"holder"`
	Held       bool    `json:"held"`
	Left       float64 `json:"left"` // negative after the lease has ended
	Generation int64   `json:"generation"`
}

// Table is a sharded table.
type Table struct {
	Name   string  `json:"name"`
	Key    string  `json:"key"`
	Slots  int     `json:"slots"`
	Source string  `json:"source,omitempty"` // the source of a migration, while it serves the table
	Shards []Shard `json:"shards"`           // in the order of their first slots
}

// Shard is a physical table.
type Shard struct {
	Database string `json:"database"`
	Table    string `json:"table"`
	Runs     []Run  `json:"slots"` // the shard's slots
	Rows     *int64 `json:"rows,omitempty"`
}

// Run is a range of slots without a gap.
type Run struct {
	First int `json:"first"`
	Last  int `json:"last"`
}

// Held returns the number of the shard's slots.
func (s Shard) Held() (n int) {
	for _, r := range s.Runs {
		n += r.Last - r.First + 1
	}
	return n
}

// hold adds a slot that is higher than all slots of the shard.
func (s *Shard) hold(slot int) {
	if last := len(s.Runs) - 1; last >= 0 && s.Runs[last].Last == slot-1 {
		s.Runs[last].Last = slot
		return
	}
	s.Runs = append(s.Runs, Run{slot, slot})
}

// Job describes a migration.
type Job struct {
	Name   string          `json:"name"`
	Status *migrate.Status `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Decoded is an id with the values of its fields.
type Decoded struct {
	ID        string        `json:"id"`
	Generator string        `json:"generator"` // the generator whose layout was used
	Parts     *keygen.Parts `json:"parts,omitempty"`
	Error     string        `json:"error,omitempty"`
}
