package sqlstore

import (
	"context"
	"database/sql"
	"errors"
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
		return nil, fmt.Errorf("sqlstore: %w: WORKER_NODE gave %d, and the layout's largest is %d; use a layout with more worker bits", keygen.ErrNoWorker, id, most)
	}
	return disposable(id), nil
}

// insert commits by itself, whatever the connection's autocommit says: an id
// whose row is rolled back could be given again.
func (w *workerNode) insert(ctx context.Context) (id int64, err error) {
	tx, err := w.store.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreDone(tx.Rollback()))
		}
	}()
	q := w.store.server.Quote
	now := time.Now().UTC()
	stamp := now.Format(time.DateTime)
	res, err := tx.ExecContext(ctx, "INSERT INTO "+q("WORKER_NODE")+
		" ("+q("HOST_NAME")+", "+q("PORT")+", "+q("TYPE")+", "+q("LAUNCH_DATE")+", "+q("MODIFIED")+", "+q("CREATED")+
		") VALUES (?, ?, ?, ?, ?, ?)", w.host, w.port, typeActual, now.Format(time.DateOnly), stamp, stamp)
	if err != nil {
		return 0, err
	}
	if id, err = res.LastInsertId(); err != nil {
		return 0, err
	}
	return id, tx.Commit()
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// disposable is a worker id that no other process had or will have.
type disposable int64

var _ keygen.Lease = disposable(0)

func (d disposable) ID() int64 { return int64(d) }

func (d disposable) NotBefore() int64 { return 0 }
