// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/shardid/shardid/sharding"
)

// Config says what a database is made of.
type Config struct {
	// Router knows the sharded tables and their databases. It must be given.
	Router *sharding.Router
	// Home is the pool of all tables that the router does not know. It must be
	// given; it may be one of the router's databases.
	Home *sql.DB
	// Replicas are read-only copies of the router's databases, by their names there.
	// Queries about rows of shards go to the copies in turn, one shard's as well as
	// those of several. The database itself answers in transactions, queries that lock
	// rows, those with [sharding.Primary] in their context, and those about tables that
	// the source of a [sharding.Migration] serves. Copies are behind their database by
	// as much as it takes them to follow. Defaults to none.
	Replicas map[string][]*sql.DB
	// Observer is told what becomes of each statement. Defaults to nobody.
	Observer Observer
}

// Check returns everything that is wrong with c. What [OpenDB] makes of such a c fails
// with the same error, whatever it is asked.
func (c Config) Check() error {
	var errs []error
	if c.Router == nil {
		errs = append(errs, errors.New("Config.Router is nil"))
	} else {
		errs = append(errs, c.checkReplicas())
	}
	if c.Home == nil {
		errs = append(errs, errors.New("Config.Home is nil"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("shardsql: %w", err)
	}
	return nil
}

// OpenDB returns the database. It sends nothing yet. The limits of its own pool
// (SetMaxOpenConns and its like) bound how many statements work at the same time;
// an idle connection of it holds none of the pools behind it.
func OpenDB(c Config) *sql.DB {
	if err := c.Check(); err != nil {
		return sql.OpenDB(unusable{err})
	}
	return sql.OpenDB(&connector{database: newDatabase(c)})
}

// database is what all connections share.
type database struct {
	router   *sharding.Router
	home     *sql.DB
	homeName string // by which the router knows the home pool, or ""
	replicas replicas
	prepared prepared
	plans    plans
	schemas  schemas
	turns    turns
	settled  settled
	lookups  lookups
	deciders deciders
	observer Observer
	// migration is the one whose statements are previewed, or nil.
	migration *sharding.Migration

	asking turn    // the home database how it reads SQL
	server *server // nil until a connection has asked
}

func newDatabase(c Config) *database {
	return &database{
		router: c.Router, home: c.Home, homeName: routerName(c.Router, c.Home), replicas: newReplicas(c), observer: c.Observer, migration: previewing(c.Router), asking: newTurn(),
	}
}

// routerName returns the name under which a router knows a pool, or "".
func routerName(r *sharding.Router, pool *sql.DB) string {
	for _, name := range r.Databases() {
		if r.DB(name) == pool {
			return name
		}
	}
	return ""
}

// nameOf returns the name of a pool, for messages.
func (d *database) nameOf(pool *sql.DB) string {
	if name := routerName(d.router, pool); name != "" {
		return "database " + name
	}
	return "the home database"
}

// shortNameOf returns the router's name of a pool, or "home".
func (d *database) shortNameOf(pool *sql.DB) string {
	return cmp.Or(routerName(d.router, pool), "home")
}

// connector makes connections. They cost nothing: each takes one from the pools
// behind it when a statement needs it.
type connector struct{ database *database }

var _ driver.Connector = (*connector)(nil)

// Connect returns a connection.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	return &conn{session{database: c.database}}, nil
}

// Driver returns the driver of the home pool, by which libraries tell the dialect.
func (c *connector) Driver() driver.Driver { return c.database.home.Driver() }

// unusable is what stands for a database whose Config is wrong.
type unusable struct{ err error }

// Connect returns what is wrong.
func (u unusable) Connect(context.Context) (driver.Conn, error) { return nil, u.err }

// Driver returns u.
func (u unusable) Driver() driver.Driver { return u }

// Open returns what is wrong.
func (u unusable) Open(string) (driver.Conn, error) { return nil, u.err }
