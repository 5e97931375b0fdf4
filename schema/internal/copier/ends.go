// SPDX-License-Identifier: Apache-2.0

package copier

import (
	"context"
	"sync"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// read reads rows of the source and finds the shard of each.
func (c *Copier) read(ctx context.Context, t *openjob.Table, l transfer.Limits, within proto.Chunk) (rows []backend.Row, more bool, err error) {
	err = c.state.Source.Do(ctx, func(s *backend.Session) (err error) {
		rows, more, err = transfer.Read(ctx, s, transfer.Reading{Limits: l, Table: t, Name: t.Name, Where: Within(backend.ColumnOf(s.Database, t.Name, t.Key), within), Routed: true, About: c.pace.ChunkRows})
		return err
	})
	return rows, more, err
}

// store writes the rows to all databases at once, with one transaction for each.
func (c *Copier) store(ctx context.Context, t *openjob.Table, rows []backend.Row) (refused []int64, err error) {
	if err := transfer.Convert(ctx, c.leader.IDWriter(), t, rows, idmap.ToShards); err != nil {
		return nil, err
	}
	parts, refused := transfer.ByTarget(t, rows)
	var mu sync.Mutex
	var tasks []func(context.Context) error
	for _, side := range c.state.Shards {
		tasks = append(tasks, func(ctx context.Context) error {
			here, err := c.storeOn(ctx, side, t, parts)
			mu.Lock()
			defer mu.Unlock()
			refused = append(refused, here...)
			return err
		})
	}
	err = backend.Together(ctx, tasks...)
	return refused, err
}

// storeOn writes the rows of one database. When it repeats a transaction that may have been
// committed, it first removes the chunk's own rows.
func (c *Copier) storeOn(ctx context.Context, side *backend.Database, t *openjob.Table, parts [][]backend.Row) (refused []int64, err error) {
	first := true
	err = c.leader.On(ctx, side, func(s *backend.Session) error {
		again := !first
		first, refused = false, nil
		for i, to := range t.Targets {
			if to.Database != side || len(parts[i]) == 0 {
				continue
			}
			name := to.Present()
			if again {
				if err := transfer.Remove(ctx, s, t, name, transfer.Keys(parts[i])); err != nil {
					return err
				}
			}
			some, err := transfer.Store(ctx, s, t, name, parts[i])
			if err != nil {
				return err
			}
			refused = append(refused, some...)
		}
		return nil
	})
	return refused, err
}
