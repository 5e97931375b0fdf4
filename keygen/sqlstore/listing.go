// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// TagRow is a row of leaf_alloc, for display.
type TagRow struct {
	Tag  string
	Next int64 // the lowest id that is not reserved yet
	Step int64 // the row's step: the size of a segment unless the generator decides otherwise
	// Unchanged is the time since the last reservation, by the database's clock, in whole
	// seconds.
	Unchanged time.Duration
}

// TagRows returns the first rows of leaf_alloc in the order of their tags, at most limit of
// them. It is read-only.
func (s *Store) TagRows(ctx context.Context, limit int) (rows []TagRow, err error) {
	err = s.do(ctx, func(s session) error {
		rows = nil
		return s.each(ctx, func(r *sql.Rows) error {
			var row TagRow
			var age int64
			err := r.Scan(&row.Tag, &row.Next, &row.Step, &age)
			row.Unchanged = time.Duration(max(age, 0)) * time.Second
			rows = append(rows, row)
			return err
		}, `SELECT "biz_tag", "max_id", "step", COALESCE(`+sinceUpdate[s.server.Name()]+`, 0) FROM "leaf_alloc" ORDER BY "biz_tag" LIMIT ?`, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list leaf_alloc: %w", err)
	}
	return rows, nil
}

// sinceUpdate is the number of seconds since a row of leaf_alloc changed.
var sinceUpdate = map[string]string{
	mysqlName:    `TIMESTAMPDIFF(SECOND, "update_time", NOW())`,
	postgresName: `CAST(EXTRACT(EPOCH FROM clock_timestamp() - "update_time") AS bigint)`,
	sqliteName:   `CAST(strftime('%s', 'now') AS INTEGER) - CAST(strftime('%s', "update_time") AS INTEGER)`,
}

// LeaseRow is a row of worker_lease, for display.
type LeaseRow struct {
	Namespace string
	Layout    string // of the namespace, "" if none is stored
	Worker    int64
	Holder    string // the last process that took it
	Held      bool   // its holder has not returned it
	// Left is the time until the lease ends unless it is renewed, by the database's clock. It
	// is negative once the worker id is free.
	Left time.Duration
	// Generation is the number of times that the worker id was taken.
	Generation int64
}

// LeaseRows returns the rows of worker_lease whose worker ids were taken at least once, in the
// order of their namespaces and worker ids, at most limit of them. It is read-only.
func (s *Store) LeaseRows(ctx context.Context, limit int) (rows []LeaseRow, err error) {
	err = s.do(ctx, func(s session) error {
		rows = nil
		return s.each(ctx, func(r *sql.Rows) error {
			var row LeaseRow
			var t ticks
			var ceiling, now int64
			err := r.Scan(&row.Namespace, &row.Layout, &row.Worker, &row.Holder, &row.Held, &row.Generation, &ceiling, &t.epoch, &t.unit, &now)
			if err == nil {
				t.unit /= 1000 // the column has nanoseconds
				row.Left = t.start(ceiling).Sub(time.UnixMicro(now)).Truncate(time.Millisecond)
				rows = append(rows, row)
			}
			return err
		}, listLeases(s.server), lastRow, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list worker_lease: %w", err)
	}
	return rows, nil
}

// listLeases reads the unit of a namespace without its sign. A negative unit marks a row with a
// layout.
func listLeases(server dialect.Server) string {
	return `SELECT l."namespace", n."layout", l."worker_id", l."holder", CASE WHEN l."owner" IS NULL THEN 0 ELSE 1 END, l."generation", l."ceiling",
			n."epoch_us", ABS(n."unit_ns"), ` + serverMicros[server.Name()] + `
		FROM "worker_lease" l JOIN "worker_namespace" n ON n."namespace" = l."namespace"
		WHERE l."worker_id" < ? AND l."generation" > 0 AND n."unit_ns" <> 0 ORDER BY l."namespace", l."worker_id" LIMIT ?`
}
