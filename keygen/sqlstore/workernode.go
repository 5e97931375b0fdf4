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
func (s *Store) WorkerNode(host, port string) keygen.Assigner {
	return &workerNode{s, host, port}
}

type workerNode struct {
	store      *Store
	host, port string
}

var _ keygen.Assigner = (*workerNode)(nil)

// typeActual is UidGenerator's WorkerNodeType for processes that are not in one
// of its own containers.
const typeActual = 2

// Acquire inserts the row. An id that the layout has no room for is an error
// that wraps [keygen.ErrNoWorker].
func (w *workerNode) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	id, err := w.insert(ctx)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: insert into WORKER_NODE: %w", err)
	}
	if most := int64(1)<<l.WorkerBits() - 1; id > most {
		return nil, fmt.Errorf("sqlstore: %w: WORKER_NODE gave %d, and the layout's largest is %d; change to a layout with more worker bits as package workerid describes", keygen.ErrNoWorker, id, most)
	}
	return disposable(id), nil
}

const insertNode = `INSERT INTO "WORKER_NODE" ("HOST_NAME", "PORT", "TYPE", "LAUNCH_DATE", "MODIFIED", "CREATED") VALUES (?, ?, ?, ?, ?, ?)`

// insert commits by itself, whatever the connection's autocommit says: an id
// whose row is rolled back could be given again.
func (w *workerNode) insert(ctx context.Context) (id int64, err error) {
	now := time.Now().UTC()
	stamp := now.Format(time.DateTime)
	args := []any{w.host, w.port, typeActual, now.Format(time.DateOnly), stamp, stamp}
	err = w.store.do(ctx, func(s session) error {
		return s.inTx(ctx, func() (err error) {
			if s.server.Name() == postgresName {
				return s.row(ctx, insertNode+` RETURNING "ID"`, args...).Scan(&id)
			}
			res, err := s.conn.ExecContext(ctx, s.text(insertNode), args...)
			if err == nil {
				id, err = res.LastInsertId()
			}
			return err
		})
	})
	return id, err
}

// disposable is a worker id that no other process had or will have.
type disposable int64

var _ keygen.Lease = disposable(0)

func (d disposable) ID() int64 { return int64(d) }

func (d disposable) NotBefore() int64 { return 0 }
