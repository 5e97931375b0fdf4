package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/shardid/shardid/keygen"
)

// WorkerNode returns UidGenerator's DisposableWorkerIdAssigner: each start
// inserts a row into WORKER_NODE, and the row's id is the worker id. It is new
// at each start and never used again, so neither clocks nor crashes can make
// two processes share it; a layout with 22 worker bits lasts for 4.2 million
// starts. Host and port, at most 64 bytes each, tell people who it was; they
// may be anything, and need not be unique.
//
// The table has no place for the layout: all processes that use it must have the
// same one, or ids of different worker ids can be equal. To change it see package
// workerid.
//
// Do not delete rows of WORKER_NODE: MySQL before 8.0 gives the highest ids
// again after a restart when their rows are gone.
//
// A database that forgets rows gives their worker ids again: one restored from a
// backup, or a replica that took over and had not received the latest starts. The
// time in the ids of both processes may then be the same. [Store.GuardedWorkerNode]
// notices another server; schema.Doctor warns where nobody uses it.
func (s *Store) WorkerNode(host, port string) keygen.Assigner {
	return &workerNode{store: s, host: host, port: port}
}

// GuardedWorkerNode is WorkerNode for a database that may fail over to a replica,
// or be restored on another server. Each start compares the server with the one
// that worker_namespace notes; on another one it first leaves out a thousand worker
// ids, so that those of starts that were lost are not given again as long as they
// were fewer than that. The first use on a table with rows leaves them out as well.
//
// Everybody who inserts must do it through a GuardedWorkerNode: a UidGenerator, or a
// WorkerNode, would not notice the other server before the ids are left out. It
// needs worker bits for that: 22 of them last for four thousand other servers, 10
// for none. It needs the table worker_namespace, the right to SELECT, INSERT and
// UPDATE in it and, on PostgreSQL, to UPDATE the sequence of WORKER_NODE.
//
// A backup that is restored on the server that it was made on, or a copy of a MySQL
// server's folder with its auto.cnf, cannot be noticed: raise AUTO_INCREMENT, or the
// sequence, by hand then.
func (s *Store) GuardedWorkerNode(host, port string) keygen.Assigner {
	return &workerNode{store: s, host: host, port: port, guarded: true}
}

type workerNode struct {
	store      *Store
	host, port string
	guarded    bool
}

var _ keygen.Assigner = (*workerNode)(nil)

// nodesRow is the row of worker_namespace that notes the server on which guarded
// worker ids are inserted. No leases can have this namespace.
const nodesRow = "WORKER_NODE"

// skippedNodes is how many worker ids are left out on another server: more than
// start in the time that a replica may be behind.
const skippedNodes = 1000

// typeActual is UidGenerator's WorkerNodeType for processes that are not in one
// of its own containers.
const typeActual = 2

// Acquire inserts the row. An id that the layout has no room for is an error
// that wraps [keygen.ErrNoWorker].
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

	// PostgreSQL's own number is nobody's to set, and stays where it is when a row
	// sets another one.
	skipNodesPostgres = `SELECT setval(s, nextval(s) + ?) FROM pg_get_serial_sequence('"WORKER_NODE"', 'ID') AS s`
)

// insert commits by itself, whatever the connection's autocommit says: an id
// whose row is rolled back could be given again.
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
	res, err := s.conn.ExecContext(ctx, s.text(text), args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// insertGuarded inserts a row and, on another server, one more above those that may
// have been lost. The first tells where the numbers are, also where rows were
// deleted; its own is not used.
func (w *workerNode) insertGuarded(ctx context.Context, s session) (int64, error) {
	other, noted, err := s.guard(ctx, nodesRow)
	if err != nil {
		return 0, err
	}
	id, err := w.insertOn(ctx, s, insertNode)
	if err != nil || other == "" {
		return id, err
	}
	if noted || id > 1 {
		if id, err = w.skip(ctx, s, id); err != nil {
			return 0, err
		}
	}
	return id, s.note(ctx, nodesRow, other)
}

func (w *workerNode) skip(ctx context.Context, s session, id int64) (int64, error) {
	if s.server.Name() != postgresName {
		above := id + skippedNodes
		_, err := w.insertOn(ctx, s, insertNodeAt, above)
		return above, err
	}
	var reached int64
	if err := s.row(ctx, skipNodesPostgres, skippedNodes).Scan(&reached); err != nil {
		return 0, err
	}
	return w.insertOn(ctx, s, insertNode)
}

// disposable is a worker id that no other process had or will have.
type disposable int64

var _ keygen.Lease = disposable(0)

func (d disposable) ID() int64 { return int64(d) }

func (d disposable) NotBefore() int64 { return 0 }
