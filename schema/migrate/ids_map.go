// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardid/shardid/schema/internal/idmap"
)

// ResolveOld returns the id on the shards of the row with the id old on the source, for
// references that are kept elsewhere: in other databases, caches and links. It works from
// the beginning of Run and after Finalize; where ids are kept or computed it does not check
// whether the row exists. table is the name of a table of the job. For an id without a
// counterpart the error wraps [ErrNoID].
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
