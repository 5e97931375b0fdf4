// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/keygen"
)

// Store gives access to the tables leaf_alloc, WORKER_NODE, worker_namespace and worker_lease
// of one database, and to tinyid's and CosId's tables if they are there. It is safe for
// concurrent use and needs no Close. The caller still owns the *sql.DB.
type Store struct {
	db            *sql.DB
	server        atomic.Pointer[dialect.Server] // nil until the server was identified
	highestValues [counterKinds]atomic.Int64     // the highest number that each counter's column can hold; 0 before it was checked

	leasesChecked   atomic.Bool // the tables of leases were checked
	gap             sqlrun.Gap  // before the next task, on a group with several primaries
	answersWithheld atomic.Bool // a proxy shares sessions and refuses LAST_INSERT_ID(expr)
}

// New identifies the database (MySQL, MariaDB, PostgreSQL or SQLite) and returns a Store. It does
// not look for the tables, which need not exist yet: the first use of a table returns the error of
// a missing one, as segment.New does, which reserves the first segment. If the database cannot be
// reached, or has not answered after three seconds, New returns no error and the first use
// identifies it, because a process may be able to start without it (workerid.LeasedConfig.File).
func New(ctx context.Context, db *sql.DB) (*Store, error) {
	if db == nil {
		return nil, errNoDB
	}
	s := &Store{db: db}
	limited, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	if _, err := s.detect(limited, db); err != nil && (ctx.Err() != nil || !s.outOfReach(limited, err)) {
		return nil, fmt.Errorf("sqlstore: %w", explained(err))
	}
	return s, nil
}

// identifyTimeout is how long New waits for the database. One whose machine is gone may not answer
// at all.
const identifyTimeout = 3 * time.Second

// errNoDB is the error of a Store that New did not make. A retry cannot cure it.
var errNoDB = &keygen.SetupError{Err: errors.New("sqlstore: db is nil"), Cure: "open the database first"}

// outOfReach returns true when detect failed because the database could not be reached, or did not
// answer before ctx ended, which may pass.
func (s *Store) outOfReach(ctx context.Context, err error) bool {
	var setup *keygen.SetupError
	return ctx.Err() != nil || !errors.As(explained(err), &setup) && s.db.PingContext(ctx) != nil
}

// detect returns the kind of the server, which it determines once.
func (s *Store) detect(ctx context.Context, db dialect.Querier) (dialect.Server, error) {
	if known := s.server.Load(); known != nil {
		return *known, nil
	}
	var server dialect.Server
	err := sqlrun.Retry(ctx, nil, func() (err error) {
		server, err = dialect.Identify(ctx, db)
		return err
	})
	if err == nil {
		s.server.Store(&server)
	}
	return server, err
}

// These are the names of the dialects for which statements differ.
const (
	mysqlName    = "mysql" // MariaDB too
	postgresName = "postgres"
	sqliteName   = "sqlite"
)
