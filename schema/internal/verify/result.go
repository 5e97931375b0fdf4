// SPDX-License-Identifier: Apache-2.0

package verify

// Kind is the kind of a difference.
type Kind string

// The kinds. Package migrate documents them.
const (
	Missing   Kind = "missing"
	Different Kind = "different"
	Misplaced Kind = "misplaced"
	Extra     Kind = "extra"
)

// Divergence is a row that differs although no change of it is pending.
type Divergence struct {
	Table  string
	ID     int64
	Kind   Kind
	Target string // database and physical table that is wrong; "" for a child without a parent
}

// maxListed bounds the divergences of a result, as a whole table may differ.
const maxListed = 1000

// Result is the result of one pass over all rows. Package migrate documents its fields.
type Result struct {
	Rows, Ranges, Suspects, Unsettled, Requeued int64
	Divergences                                 []Divergence
	Complete                                    bool
}

func (r *Result) add(found []Divergence) {
	room := maxListed - len(r.Divergences)
	r.Divergences = append(r.Divergences, found[:min(room, len(found))]...)
}
