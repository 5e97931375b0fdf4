// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/schema/internal/verify"
)

// Kind is the kind of a difference: on the shards, or after Cutover in the retired table.
type Kind string

// The kinds.
const (
	Missing   Kind = Kind(verify.Missing)   // "missing": the row is not on the target
	Different Kind = Kind(verify.Different) // "different": the row has other values on the target
	Misplaced Kind = Kind(verify.Misplaced) // "misplaced": a shard has the row that it does not belong to
	Extra     Kind = Kind(verify.Extra)     // "extra": the target has a row that the serving side does not have
)

// Divergence is a row that differs although no change of it is pending.
type Divergence struct {
	Table  string `json:"table"`
	ID     int64  `json:"id"` // in the source
	Kind   Kind   `json:"kind"`
	Target string `json:"target"` // database and physical table that is wrong; "" for a child without a parent
}

// String names the row and the difference.
func (d Divergence) String() string {
	if d.Target == "" {
		return fmt.Sprintf("%s %d: %s, as the row that leads to its shard is", d.Table, d.ID, d.Kind)
	}
	return fmt.Sprintf("%s %d: %s on %s", d.Table, d.ID, d.Kind, d.Target)
}

// Verification is the result of one pass over all rows.
type Verification struct {
	Rows     int64 `json:"rows"`     // of the source, as far as they are copied
	Ranges   int64 `json:"ranges"`   // of ids that were compared as a whole
	Suspects int64 `json:"suspects"` // rows that were compared one by one
	// Unsettled rows could not be compared: changes of them wait for a runner to apply them, or
	// for another row, as Run says, or kept coming.
	Unsettled int64 `json:"unsettled"`
	// Requeued is how many rows differ; the runner writes them again.
	Requeued int64 `json:"requeued"`
	// Divergences are the rows that differ, up to 1000 of them.
	Divergences []Divergence `json:"divergences"`
	// Complete is false while rows are still to be copied; these were not compared.
	Complete bool `json:"complete"`
}

// Clean reports whether every row was compared and none differs.
func (v Verification) Clean() bool { return v.Complete && v.Requeued == 0 && v.Unsettled == 0 }

func verificationOf(done verify.Result) Verification {
	v := Verification{done.Rows, done.Ranges, done.Suspects, done.Unsettled, done.Requeued, make([]Divergence, len(done.Divergences)), done.Complete}
	for i, d := range done.Divergences {
		v.Divergences[i] = Divergence{d.Table, d.ID, Kind(d.Kind), d.Target}
	}
	return v
}

// Verify compares every copied row with the shards, without a lock and while writers and
// the runner continue, once from the first id to the last, including stray rows below and
// above them. It reads the sums of ranges of rows, Config.Copiers of them at a time, and
// single rows only where sums differ. A row that differs although no change of it is
// pending is reported, and noted in the log so that the runner writes it again: a second
// pass shows whether that helped.
//
// After Cutover, Verify compares the retired tables with the shards, which serve; Follow
// writes rows that differ again.
//
// It may run beside Run or Follow, in this process or another. Divergences are not an
// error. When a table of the source was truncated or altered, the error is ErrChanged, and
// the differences were not noted; when the job was switched or aborted meanwhile, it is
// ErrPhase.
func (j *Job) Verify(ctx context.Context) (Verification, error) {
	w, err := j.open(ctx)
	if err != nil {
		return Verification{}, fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	defer w.Close()
	if err := w.sameSetup(ctx); err != nil {
		return Verification{}, fmt.Errorf("migrate: job %s: verify: %w", j.cfg.Name, err)
	}
	done, err := verify.Compare(ctx, w.State, verify.Options{ChunkRows: j.cfg.ChunkRows, Workers: j.cfg.Copiers, Guarded: true})
	if err != nil {
		return Verification{}, fmt.Errorf("migrate: job %s: verify: %w", j.cfg.Name, err)
	}
	return verificationOf(done), nil
}
