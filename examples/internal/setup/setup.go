// Package setup has what the two shops begin with: their databases, the router, the ids and
// the status page.
package setup

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-sql-driver/mysql"
	_ "modernc.org/sqlite" // registers "sqlite", which needs no C compiler

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/observe/statuspage"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// Flags are those of both programs.
type Flags struct{ Listen, East, West string }

func parse() (f Flags) {
	flag.StringVar(&f.Listen, "listen", "localhost:8080", "where to answer")
	flag.StringVar(&f.East, "east", "", "DSN of a MySQL or MariaDB database, user:password@tcp(host:port)/shop; default: a file of SQLite that goes away")
	flag.StringVar(&f.West, "west", "", "the same of the second database")
	flag.Parse()
	return f
}

// Shop is what a program needs to store and find rows.
type Shop struct {
	Driver string  // "mysql" or "sqlite"
	Home   *sql.DB // east, with the tables that are not sharded
	Router *sharding.Router
	IDs    *snowflake.Generator

	store *sqlstore.Store
	undo  []func() error
}

// Slots is into how many parts the users are divided, each with its orders and items: a
// power of two, so that the last bits of an id say which. With a few hundred of them more
// databases are a matter of moving some.
const (
	Slots    = 8
	slotBits = 3
)

// Open connects to the databases and makes the tables that ids and worker ids need.
func Open(ctx context.Context, f Flags) (s *Shop, err error) {
	s = &Shop{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	dbs, err := s.databases(f)
	if err != nil {
		return s, err
	}
	s.Home = dbs["east"]
	if s.Router, err = route(dbs); err != nil {
		return s, err
	}
	if err := s.number(ctx, dbs["ids"]); err != nil {
		return s, err
	}
	return s, nil
}

// databases opens east and west, and once more the one with the worker ids: a pool whose
// connections are all in transactions could not renew a lease.
func (s *Shop) databases(f Flags) (map[string]*sql.DB, error) {
	dsns := map[string]string{"east": f.East, "west": f.West, "ids": f.East}
	s.Driver = "mysql"
	if f.East == "" || f.West == "" {
		s.Driver = "sqlite"
		dir, err := os.MkdirTemp("", "shop")
		if err != nil {
			return nil, err
		}
		s.undo = append(s.undo, func() error { return os.RemoveAll(dir) })
		for name := range dsns {
			dsns[name] = "file:" + filepath.Join(dir, name+".db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate"
		}
	}
	dbs := map[string]*sql.DB{}
	for name, dsn := range dsns {
		if s.Driver == "mysql" {
			cfg, err := mysql.ParseDSN(dsn)
			if err != nil {
				return nil, fmt.Errorf("-%s: %w", name, err)
			}
			cfg.ParseTime = true
			dsn = cfg.FormatDSN()
		}
		db, err := sql.Open(s.Driver, dsn)
		if err != nil {
			return nil, err
		}
		s.undo = append(s.undo, db.Close)
		dbs[name] = db
	}
	return dbs, nil
}

// route says where rows lie. All tables of one group have the rows of a user in one slot: a
// user's own by its id, an order's by user_id, an item's by order_id. Ids of orders carry
// the slot of their user, so that they lead there, too.
func route(dbs map[string]*sql.DB) (*sharding.Router, error) {
	table := func(name, key string) sharding.Table {
		m, err := sharding.Spread([]string{"east", "west"}, Slots, name+"_%d")
		if err != nil {
			panic(err) // the arguments are constants
		}
		return sharding.Table{Name: name, Key: key, Rule: sharding.Low(slotBits), Map: m, Group: "shop"}
	}
	users, orders, items := table("users", "id"), table("orders", "user_id"), table("items", "order_id")
	users.Lookups = []sharding.Lookup{{Column: "email", Table: "users_by_email", Unique: true}}
	orders.Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(slotBits)}}
	return sharding.New(sharding.DBs{"east": dbs["east"], "west": dbs["west"]}, users, orders, items, sharding.Broadcast("products"))
}

// number begins to make ids. Each process has a worker id to itself, which it leases.
func (s *Shop) number(ctx context.Context, db *sql.DB) (err error) {
	if err := schema.Apply(ctx, db); err != nil {
		return err
	}
	if s.store, err = sqlstore.New(ctx, db); err != nil {
		return err
	}
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: s.store.Leases(), Namespace: "shop"})
	if err != nil {
		return err
	}
	s.IDs, err = snowflake.New(ctx, snowflake.Config{Worker: worker, Layout: keygen.Twitter().WithBucket(slotBits)})
	if err != nil {
		return err
	}
	s.undo = append(s.undo, s.IDs.Close)
	return nil
}

// Page shows the ids, the shards and the worker ids. A program puts it behind its own
// authentication.
func (s *Shop) Page() (http.Handler, error) {
	service, err := observe.New(observe.Config{Generators: keygen.Set{Default: s.IDs}, Router: s.Router})
	if err != nil {
		return nil, err
	}
	return statuspage.New(statuspage.Config{Service: service, Store: s.store})
}

// Close ends in the reverse order of the beginning: the ids before their database.
func (s *Shop) Close() (err error) {
	for _, undo := range slices.Backward(s.undo) {
		err = errors.Join(err, undo())
	}
	return err
}
