// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"gorm.io/gorm"
)

// readBack finds every new row by its parent's key through every application, and returns
// how many are missing or different.
func (t *traffic) readBack(ctx context.Context, apps map[string]app) (int64, error) {
	var all []made
	for _, w := range t.writers {
		all = append(all, w.mine...)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var wrong int64
	var running sync.WaitGroup
	for name, a := range apps {
		for first := range writersPerApp {
			running.Go(func() {
				for i := first; i < len(all) && ctx.Err() == nil; i += writersPerApp {
					n, err := t.wrongRows(ctx, a, all[i])
					if err != nil {
						cancel(fmt.Errorf("read back through %s: %w", name, err))
					}
					t.add(all[i].rows())
					mu.Lock()
					wrong += n
					mu.Unlock()
				}
			})
		}
	}
	running.Wait()
	return wrong, context.Cause(ctx)
}

func (t *traffic) wrongRows(ctx context.Context, a app, m made) (int64, error) {
	parent, children, err := a.find(ctx, t.tables[0].keyOf(m.parent.stored))
	if errors.Is(err, sql.ErrNoRows) || errors.Is(err, gorm.ErrRecordNotFound) {
		return m.rows(), nil
	}
	if err != nil {
		return 0, err
	}
	var wrong int64
	if !sameValues(t.models.parent.values(parent), m.parent.read) {
		wrong++
	}
	found := map[int64][]any{}
	for i := range m.children { // none when there is no child table
		if i < children.Len() {
			row := children.Index(i)
			found[t.models.child.key(row)] = t.models.child.values(row)
		}
	}
	for _, c := range m.children {
		if !sameValues(found[t.tables[1].keyOf(c.stored)], c.read) {
			wrong++
		}
	}
	return wrong, nil
}
