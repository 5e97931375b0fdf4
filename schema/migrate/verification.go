package migrate

import "fmt"

// Kind is how a row is not what it should be: on the shards, or after Cutover in
// the retired table.
type Kind string

// The kinds.
const (
	Missing   Kind = "missing"   // it is not where it was to be brought
	Different Kind = "different" // it has other values there
	Misplaced Kind = "misplaced" // a shard has it that it does not belong to
	Extra     Kind = "extra"     // it is there, but not where rows come from
)

// Divergence is a row that was found to differ although no change of it was
// under way.
type Divergence struct {
	Table  string `json:"table"`
	ID     int64  `json:"id"` // in the source
	Kind   Kind   `json:"kind"`
	Target string `json:"target"` // database and physical table that is wrong; "" for a child without a parent
}

// String names the row and what is wrong with it.
func (d Divergence) String() string {
	if d.Target == "" {
		return fmt.Sprintf("%s %d: %s, as the row that leads to its shard is", d.Table, d.ID, d.Kind)
	}
	return fmt.Sprintf("%s %d: %s on %s", d.Table, d.ID, d.Kind, d.Target)
}

// maxListed bounds Verification.Divergences, for a whole table may differ.
const maxListed = 1000

// Verification is the result of one pass over all rows.
type Verification struct {
	Rows     int64 `json:"rows"`     // of the source, as far as they are copied
	Ranges   int64 `json:"ranges"`   // of ids that were compared as a whole
	Suspects int64 `json:"suspects"` // rows that were looked at alone
	// Unsettled rows could not be judged: changes of them are waiting for a
	// runner to apply them, or kept coming.
	Unsettled int64 `json:"unsettled"`
	// Requeued is how many rows differ; the runner writes them again.
	Requeued int64 `json:"requeued"`
	// Divergences are the rows that differ, up to 1000 of them.
	Divergences []Divergence `json:"divergences"`
	// Complete is false while rows are still to be copied, which were left out.
	Complete bool `json:"complete"`
}

// Clean reports whether every row was compared and none differs.
func (v Verification) Clean() bool { return v.Complete && v.Requeued == 0 && v.Unsettled == 0 }

func (v *Verification) add(found []Divergence) {
	room := maxListed - len(v.Divergences)
	v.Divergences = append(v.Divergences, found[:min(room, len(found))]...)
}
