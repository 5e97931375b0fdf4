package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/shardid/shardid/internal/dialect"
)

// Store reaches the tables leaf_alloc, WORKER_NODE, worker_namespace and
// worker_lease in one database. It is safe for concurrent use and holds nothing
// that needs closing; the *sql.DB stays the caller's.
type Store struct {
	db     *sql.DB
	server dialect.Server
}

// New asks the database what it is (MySQL, MariaDB, PostgreSQL or SQLite) and
// returns a Store. It does not need the tables to be there yet.
func New(ctx context.Context, db *sql.DB) (*Store, error) {
	if db == nil {
		return nil, errors.New("sqlstore: db is nil; open the database first")
	}
	s := &Store{db: db}
	err := retry(ctx, func() (err error) {
		s.server, err = dialect.Detect(ctx, db)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// The dialects that statements differ for.
const (
	mysqlName    = "mysql" // MariaDB too
	postgresName = "postgres"
	sqliteName   = "sqlite"
)
