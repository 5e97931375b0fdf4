// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// WorkerNode returns UidGenerator's DisposableWorkerIdAssigner: each start inserts a row into
// WORKER_NODE, and the row's id is the worker id. It is new at each start and never used again,
// so no clock and no crash can give it to two processes. A layout with 22 worker bits lasts for
// 4.2 million starts. Host and port, at most 64 bytes each, describe the process for people;
// they may be any text, and need not be unique.
//
// The table does not store the layout: all processes that use it must have the same one, or ids
// of different worker ids can be equal. Package workerid says how to change it.
//
// Do not delete rows of WORKER_NODE: after a restart, MySQL before 8.0 gives the highest ids
// again if their rows were deleted.
//
// A database that loses rows gives their worker ids again: one restored from a backup, or a
// replica that took over and lacked the latest starts. The ids of both processes may then have
// the same time. [Store.GuardedWorkerNode] detects another server; schema.Doctor warns if no
// process uses it.
func (s *Store) WorkerNode(host, port string) keygen.Assigner {
	return &workerNode{store: s, host: host, port: port}
}

// GuardedWorkerNode is WorkerNode for a database that may fail over to a replica, or be
// restored on another server. Each start compares the server with the one that worker_namespace
// stores. On another one it first skips a thousand worker ids, so that worker ids of lost
// starts are not given again, provided that they were fewer than that. The first use on a table
// with rows skips them as well.
//
// All processes must insert through a GuardedWorkerNode: a UidGenerator, or a WorkerNode, would
// insert on the other server before the ids are skipped. The skipped ids use up worker bits: 22
// bits last for four thousand changes of the server, 10 bits for none. It needs the table
// worker_namespace, the right to SELECT, INSERT and UPDATE in it and, on PostgreSQL, to UPDATE
// the sequence of WORKER_NODE.
//
// It cannot detect a backup that is restored on its own server, a copy of a MySQL server's folder
// with its auto.cnf, or a copy of a PostgreSQL server's folder that is started without a promotion:
// raise AUTO_INCREMENT, or the sequence, by hand then.
func (s *Store) GuardedWorkerNode(host, port string) keygen.Assigner {
	return &workerNode{store: s, host: host, port: port, guarded: true}
}

type workerNode struct {
	store      *Store
	host, port string
	guarded    bool
}

var _ keygen.Assigner = (*workerNode)(nil)

// nodesRow is the row of worker_namespace that stores the server on which guarded worker ids
// are inserted. No lease can have this namespace.
const nodesRow = "WORKER_NODE"

// skippedWorkerIDs is the number of worker ids that are skipped on another server: more than
// the number of starts in the time that a replica may lag.
const skippedWorkerIDs = 1000

// typeActual is UidGenerator's WorkerNodeType for processes outside of its own containers.
const typeActual = 2

// Acquire inserts the row. When the id does not fit the layout, the error wraps
// [keygen.ErrNoWorker].
func (w *workerNode) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	id, err := w.insert(ctx)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: insert into WORKER_NODE: %w", writable(err))
	}
	if most := int64(1)<<l.WorkerBits() - 1; id > most {
		return nil, fmt.Errorf("sqlstore: %w: WORKER_NODE gave %d, and the layout's largest is %d; change to a layout with more worker bits as package workerid describes", keygen.ErrNoWorker, id, most)
	}
	return disposable(id), nil
}

const (
	insertNode   = `INSERT INTO "WORKER_NODE" ("HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE", "MODIFIED", "CREATED") VALUES (?, ?, ?, ?, ?, ?)`
	insertNodeAt = `INSERT INTO "WORKER_NODE" ("HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE", "MODIFIED", "CREATED", "ID") VALUES (?, ?, ?, ?, ?, ?, ?)`

	// PostgreSQL's sequence is advanced explicitly, because an INSERT with an explicit id does
	// not advance it.
	skipNodesPostgres = `SELECT setval(s, nextval(s) + ?) FROM pg_get_serial_sequence('"WORKER_NODE"', 'ID') AS s`
)

// insert commits by itself, whatever the connection's autocommit setting, because an id whose
// row is rolled back could be given again.
func (w *workerNode) insert(ctx context.Context) (id int64, err error) {
	err = w.store.do(ctx, func(s session) error {
		if err := s.durable(ctx, "WORKER_NODE", "AUTO_INCREMENT is above the ids in use"); err != nil {
			return err
		}
		if !w.guarded {
			return s.inTx(ctx, func() (err error) {
				id, err = w.insertOn(ctx, s, insertNode)
				return err
			})
		}
		if err := needs(s.server, "a guarded WORKER_NODE", plainNodes); err != nil {
			return err
		}
		if err := s.addGuard(ctx, nodesRow); err != nil {
			return err
		}
		return s.inTx(ctx, func() (err error) {
			id, err = w.insertGuarded(ctx, s)
			return err
		})
	})
	return id, err
}

func (w *workerNode) insertOn(ctx context.Context, s session, text string, more ...any) (id int64, err error) {
	now := time.Now().UTC()
	stamp := now.Format(time.DateTime)
	args := append([]any{w.host, w.port, typeActual, now.Format(time.DateOnly), stamp, stamp}, more...)
	if s.server.Name() == postgresName {
		err = s.row(ctx, text+` RETURNING "ID"`, args...).Scan(&id)
		return id, err
	}
	return s.numbered(ctx, text, args...)
}

// insertGuarded inserts a row. On another server it inserts a second row above the ids that may
// have been lost. The id of the first row shows where the numbers are, even if rows were
// deleted; it is not used itself.
func (w *workerNode) insertGuarded(ctx context.Context, s session) (int64, error) {
	g, err := s.guard(ctx, nodesRow)
	if err != nil {
		return 0, err
	}
	id, err := w.insertOn(ctx, s, insertNode)
	if err != nil || g.other == "" {
		return id, err
	}
	if g.noted != "" || id > 1 {
		if id, err = w.skip(ctx, s, id); err != nil {
			return 0, err
		}
	}
	return id, s.note(ctx, nodesRow, g)
}

func (w *workerNode) skip(ctx context.Context, s session, id int64) (int64, error) {
	if s.server.Name() != postgresName {
		above := id + skippedWorkerIDs
		_, err := w.insertOn(ctx, s, insertNodeAt, above)
		return above, err
	}
	var reached int64
	if err := s.row(ctx, skipNodesPostgres, skippedWorkerIDs).Scan(&reached); err != nil {
		return 0, err
	}
	return w.insertOn(ctx, s, insertNode)
}

// disposable is a worker id that no other process had or will get.
type disposable int64

var _ keygen.Lease = disposable(0)

func (d disposable) ID() int64 { return int64(d) }

func (d disposable) NotBefore() int64 { return 0 }
