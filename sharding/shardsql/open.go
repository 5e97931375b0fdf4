// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/columns"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/server"
)

// Config configures a database.
type Config struct {
	// Router knows the sharded tables and their databases. It is required.
	Router *sharding.Router
	// Home is the pool of all tables that the router does not know. It is required. If its database is one of
	// the router's, pass the same *sql.DB: two pools count as two databases, which transactions and joins must not
	// span, and if there are broadcast tables, they are refused with [sharding.ErrSameDatabase].
	Home *sql.DB
	// Replicas are read-only copies of the router's databases, by the router's names of the
	// databases. Queries of sharded tables use the copies in turn, whether they read one shard or
	// several. The database itself executes, with all their subqueries:
	//
	//   - transactions, and queries that lock rows or have [sharding.Primary] in their context;
	//   - queries of tables that the source of a [sharding.Migration] serves;
	//   - queries of slots that are moving, and of tables with moves of slots that the copy has not received;
	//   - queries with a function that takes a number of a sequence or a lock;
	//   - queries that a copy has refused because it is read-only, so give the copies users who may not write.
	//
	// A copy that cannot be reached is not asked for five seconds: the others are, and if none is left, the database.
	// Observer.ReplicaDown is told. Have the drivers of the copies give up connecting soon. Copies lag behind their
	// database. Each pool must lead to one copy: what one has received, another one behind the same address may lack.
	// Defaults to none.
	Replicas map[string][]*sql.DB
	// Observer is told about each statement, and about copies that are down. Defaults to none.
	Observer Observer
}

// Check returns all errors of the configuration. If [OpenDB] is called with an invalid Config,
// every operation of its database returns this error.
func (c Config) Check() error {
	var errs []error
	if c.Router == nil {
		errs = append(errs, errors.New("Config.Router is nil"))
	} else {
		errs = append(errs, c.checkReplicas())
	}
	if c.Home == nil {
		errs = append(errs, errors.New("Config.Home is nil; set it to the pool of the database of all other tables"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("shardsql: %w", err)
	}
	return nil
}

// OpenDB returns the database. It sends nothing yet. The limits of its own pool (SetMaxOpenConns
// and similar) bound the number of simultaneous statements. An idle connection of it holds no
// connection of the underlying pools.
func OpenDB(c Config) *sql.DB {
	if err := c.Check(); err != nil {
		return sql.OpenDB(unusable{err})
	}
	return sql.OpenDB(&connector{database: newDatabase(c)})
}

// database is the state that all connections share.
type database struct {
	router   *sharding.Router
	home     *sql.DB
	homeName string // the router's name of the home pool, or ""
	replicas replicas
	prepared prepared
	plans    plans
	schemas  schemas
	pooled   sync.Map // of *sql.DB to *poolState; a sync.Map, because each statement reads it
	places   places
	lookups  lookups
	observer Observer
	// migration is the migration whose statements are previewed, or nil.
	migration *sharding.Migration

	detecting ctxMutex       // held while the home database is asked for its dialect
	server    *server.Server // nil until the home database was asked
	failed    struct {       // the last time that it did not answer
		err error
		at  time.Time
	}
}

func newDatabase(c Config) *database {
	return &database{
		router: c.Router, home: c.Home, homeName: routerName(c.Router, c.Home), replicas: newReplicas(c), observer: c.Observer, migration: previewing(c.Router), detecting: newCtxMutex(),
	}
}

// routerName returns the router's name of a pool, or "".
func routerName(r *sharding.Router, pool *sql.DB) string {
	for _, name := range r.Databases() {
		if r.DB(name) == pool {
			return name
		}
	}
	return ""
}

func (d *database) poolOrHome(name string) *sql.DB {
	if name == "" {
		return d.home
	}
	return d.router.DB(name)
}

// nameOf returns the name of a pool, for messages.
func (d *database) nameOf(pool *sql.DB) string {
	if name := routerName(d.router, pool); name != "" {
		return "database " + name
	}
	for name, of := range d.replicas {
		if i := slices.Index(of.pools, pool); i >= 0 && pool != d.home {
			return fmt.Sprintf("replica %d of database %s", i, name)
		}
	}
	return "the home database"
}

// shortNameOf returns the router's name of a pool, or "home".
func (d *database) shortNameOf(pool *sql.DB) string {
	return cmp.Or(routerName(d.router, pool), "home")
}

// connector creates connections. They cost nothing: each takes a connection of the underlying pools
// when a statement needs it.
type connector struct{ database *database }

var _ driver.Connector = (*connector)(nil)

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	return &conn{session{database: c.database}}, nil
}

// Driver returns the driver of the home pool, from which libraries recognise the dialect.
func (c *connector) Driver() driver.Driver { return c.database.home.Driver() }

// unusable replaces a database whose Config is invalid.
type unusable struct{ err error }

func (u unusable) Connect(context.Context) (driver.Conn, error) { return nil, u.err }

func (u unusable) Driver() driver.Driver { return u }

func (u unusable) Open(string) (driver.Conn, error) { return nil, u.err }

// replicas are the read-only copies of the router's databases, by the databases' names. They are
// safe for concurrent use.
type replicas map[string]*rotation

// rotation returns pools in turn.
type rotation struct {
	pools []*sql.DB
	rests []atomic.Int64 // for each pool: until when it is not used, since the epoch
	moves []moves        // for each pool
	next  atomic.Uint64
}

// moves are the moves of slots that a copy is known to have.
type moves struct {
	mu     sync.Mutex
	known  map[string]int64 // by table: the version of the map up to which it has them
	asking bool
	next   time.Duration // when the copy may be asked again after it lacked moves, since the epoch; 0 if at once
}

// restOfMoves is for how long a copy that lacks moves is not asked again whether it has them.
const restOfMoves = 100 * time.Millisecond

// has reports whether the copy has the moves up to the map of a table. One caller at a time asks; meanwhile it is not known.
func (m *moves) has(of *sharding.Table, ask func() (bool, error)) (bool, error) {
	version := of.Map.Version()
	m.mu.Lock()
	known, isKnown := m.known[of.Name]
	isKnown = isKnown && known >= version
	mayAsk := !isKnown && !m.asking && (m.next == 0 || time.Since(epoch) >= m.next)
	m.asking = m.asking || mayAsk
	m.mu.Unlock()
	if !mayAsk {
		return isKnown, nil
	}
	has, err := ask()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asking = false
	if has {
		m.known[of.Name], m.next = max(version, m.known[of.Name]), 0
	} else {
		m.next = time.Since(epoch) + restOfMoves
	}
	return has, err
}

// restOfCopy is for how long a copy that could not be reached is not asked again.
const restOfCopy = 5 * time.Second

func newReplicas(c Config) replicas {
	if len(c.Replicas) == 0 {
		return nil
	}
	r := replicas{}
	for name, pools := range c.Replicas {
		if len(pools) > 0 {
			r[name] = &rotation{pools: slices.Clone(pools), rests: make([]atomic.Int64, len(pools)), moves: make([]moves, len(pools))}
			for i := range pools {
				r[name].moves[i].known = map[string]int64{}
			}
		}
	}
	return r
}

// checkReplicas returns all errors of Config.Replicas.
func (c Config) checkReplicas() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Replicas)) {
		if c.Router.DB(name) == nil {
			errs = append(errs, fmt.Errorf("Config.Replicas: the router has no database %q", name))
		}
		for i, pool := range c.Replicas[name] {
			if pool == nil {
				errs = append(errs, fmt.Errorf("Config.Replicas: replica %d of %q is nil", i, name))
			}
		}
	}
	return errors.Join(errs...)
}

// replicas returns the copies that a statement may read, nil if only the databases may answer. A
// transaction reads the databases, because the copies may lack its own writes.
func (s *session) replicas(ctx context.Context, p *plan.Plan) replicas {
	if all := s.database.replicas; all != nil && s.tx == nil && s.history.set.on == nil && p.Copied() && !sharding.HintOf(ctx).Primary {
		return all
	}
	return nil
}

// pick returns the next copy of a database that was reached, nil if there is none.
func (r replicas) pick(name string) *sql.DB {
	t := r[name]
	if t == nil {
		return nil
	}
	next, most := t.next.Add(1)-1, uint64(len(t.pools))
	for i := range most {
		at := (next + i) % most
		if until := t.rests[at].Load(); until == 0 || int64(time.Since(epoch)) >= until {
			return t.pools[at]
		}
	}
	return nil
}

// copyOf returns the next copy of a database that was reached and has all moves of slots of a table, nil if there is none. A copy that has
// not received a move yet lacks rows that were written long ago, or still has rows that are on another shard now.
func (d *database) copyOf(ctx context.Context, name string, own *sql.DB, of *sharding.Table) *sql.DB {
	copied := d.replicas.pick(name)
	if copied == nil || !of.Map.Leased() {
		return copied
	}
	for range d.replicas[name].pools {
		at := slices.Index(d.replicas[name].pools, copied)
		has, err := d.replicas[name].moves[at].has(of, func() (bool, error) {
			limited, cancel := context.WithTimeout(ctx, longestWait)
			defer cancel()
			has, err := columns.HasMoves(limited, d.server, own, copied)
			if limited.Err() != nil { // the query does not wait longer
				return false, nil
			}
			return has, err
		})
		if has {
			return copied
		}
		if err != nil {
			d.replicas.leaveOut(ctx, copied, fmt.Errorf("read shard_fence, which tells which moves of slots the copy has: %w", err), d.observer)
		}
		if copied = d.replicas.pick(name); copied == nil {
			break
		}
	}
	return nil
}

// leaveOut keeps a copy that could not be reached from being asked for a while, and reports it.
func (r replicas) leaveOut(ctx context.Context, pool *sql.DB, err error, observer Observer) {
	for name, t := range r {
		if at := slices.Index(t.pools, pool); at >= 0 {
			t.rests[at].Store(int64(time.Since(epoch) + restOfCopy))
			if observer.ReplicaDown != nil {
				observer.ReplicaDown(ctx, name, at, err)
			}
		}
	}
}
