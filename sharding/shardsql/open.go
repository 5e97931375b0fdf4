package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"github.com/shardid/shardid/sharding"
)

// Config says what a database is made of.
type Config struct {
	// Router knows the sharded tables and their databases. It must be given.
	Router *sharding.Router
	// Home is the pool of all tables that the router does not know. It must be
	// given; it may be one of the router's databases.
	Home *sql.DB
}

// OpenDB returns the database. It sends nothing yet. The limits of its own pool
// (SetMaxOpenConns and its like) bound how many statements work at the same time;
// an idle connection of it holds none of the pools behind it.
func OpenDB(c Config) *sql.DB {
	return sql.OpenDB(&connector{database: newDatabase(c)})
}

// database is what all connections share.
type database struct {
	router   *sharding.Router
	home     *sql.DB
	homeName string // by which the router knows the home pool, or ""
	plans    plans
	schemas  schemas
	turns    turns

	once   sync.Mutex
	server *server // nil until a connection has asked
}

func newDatabase(c Config) *database {
	return &database{router: c.Router, home: c.Home, homeName: nameOfHome(c)}
}

// pool returns the pool of a database of the router.
func (d *database) pool(name string) *sql.DB { return d.router.DB(name) }

// nameOfHome returns the name under which the router knows the home pool, or "".
func nameOfHome(c Config) string {
	for _, name := range c.Router.Databases() {
		if c.Router.DB(name) == c.Home {
			return name
		}
	}
	return ""
}

// connector makes connections. They cost nothing: each takes one from the pools
// behind it when a statement needs it.
type connector struct{ database *database }

var _ driver.Connector = (*connector)(nil)

// Connect returns a connection.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	return &conn{database: c.database}, nil
}

// Driver returns the driver of the home pool, by which libraries tell the dialect.
func (c *connector) Driver() driver.Driver { return c.database.home.Driver() }
