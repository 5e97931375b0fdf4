package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/keygen"
)

// Store reaches the tables leaf_alloc, WORKER_NODE, worker_namespace and
// worker_lease in one database, and tinyid's and CosId's where they are there. It is safe for concurrent use and holds nothing
// that needs closing; the *sql.DB stays the caller's.
type Store struct {
	db     *sql.DB
	server atomic.Pointer[dialect.Server] // nil until the database has said what it is
	most   [counterKinds]atomic.Int64     // what the columns of counters hold at most; 0 until they were looked at

	leasable atomic.Bool // the tables of leases were looked at
}

// New asks the database what it is (MySQL, MariaDB, PostgreSQL or SQLite) and
// returns a Store. It does not need the tables to be there yet. A database that
// is out of reach is no error: it is asked at the first use, as a process may be
// able to start without it (workerid.LeasedConfig.File).
func New(ctx context.Context, db *sql.DB) (*Store, error) {
	if db == nil {
		return nil, errNoDB
	}
	s := &Store{db: db}
	if _, err := s.detect(ctx, db); err != nil && !s.outOfReach(ctx, err) {
		return nil, fmt.Errorf("sqlstore: %w", explained(err))
	}
	return s, nil
}

// errNoDB is what a Store says that New has not made. No other try cures it.
var errNoDB = &keygen.SetupError{Err: errors.New("sqlstore: db is nil"), Cure: "open the database first"}

// outOfReach tells whether detect failed for want of a connection, which may come
// back by itself.
func (s *Store) outOfReach(ctx context.Context, err error) bool {
	var setup *keygen.SetupError
	return !errors.As(explained(err), &setup) && ctx.Err() == nil && s.db.PingContext(ctx) != nil
}

// detect returns what the database is, which it asks once.
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

// The dialects that statements differ for.
const (
	mysqlName    = "mysql" // MariaDB too
	postgresName = "postgres"
	sqliteName   = "sqlite"
)
