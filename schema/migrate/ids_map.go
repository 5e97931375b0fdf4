// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/internal/idmap"
)

// ResolveOld returns the id that the row with the id old on the source has on the
// shards, for references that are kept elsewhere: in other databases, caches and
// links. It works from the begin of Run on and after Finalize; where ids are
// kept or computed it does not ask whether there is such a row. table is the name
// of a table of the job. An id without counterpart is an error that wraps
// [ErrNoID].
func (j *Job) ResolveOld(ctx context.Context, table string, old int64) (int64, error) {
	w, err := j.open(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate: job %s: %w", j.cfg.Name, err)
	}
	defer w.Close()
	id, err := w.resolveOld(ctx, table, old)
	if err != nil {
		return 0, fmt.Errorf("migrate: job %s: table %s: %w", j.cfg.Name, table, err)
	}
	return id, nil
}

func (w *openJob) resolveOld(ctx context.Context, name string, old int64) (int64, error) {
	t := w.Tables.Find(name)
	if t == nil {
		return 0, errors.New("the job has no such table")
	}
	wanted := idmap.Wanted{}
	wanted.Add(t.IDs, old)
	d, err := w.MapTable().LookUp(ctx, w.Source, wanted, idmap.ToShards)
	if err != nil {
		return 0, err
	}
	return d.Turn(t.IDs, old)
}
