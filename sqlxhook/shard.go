package sqlxhook

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/sharding"
)

// Shard is a handle that is bound to one target of a sharded table: one
// database, and one physical table of each table of the group. It is an [Execer]
// and a [Queryer], and a sqlx.ExtContext, for functions that ask for one.
//
// Statements name tables by their logical names, which are exchanged for the
// physical ones; the physical names of this target may be used, too. One that
// names a table of another shard, that would change a sharding key, or that is
// no SELECT, INSERT, REPLACE, UPDATE or DELETE on a sharded table is refused with
// a [sharding.RouteError] before anything is sent. WHERE conditions are not
// looked at: an UPDATE changes what they match on this target.
//
// A Shard is safe for concurrent use. It belongs to the router's maps of the
// moment it was made, so take a new one for each piece of work. Only when a
// [sharding.Migration] closes its table does a Shard of [Hook.For] or
// [Hook.ForBy] go on where the table is then; others, and transactions, fail with
// [sharding.ErrRouteMoved].
type Shard struct {
	hook  *Hook
	aim   aim
	bound *binding
	db    *sqlx.DB
	conn  sqlx.ExtContext // db, or a transaction on it
}

// For returns the shard that holds the row of a sharded table with this sharding
// key. The errors are [sharding.RouteError]s.
func (h *Hook) For(table string, key any) (*Shard, error) {
	l, err := h.routing(table)
	if err != nil {
		return nil, err
	}
	return h.find(l, aim{table: table, value: key})
}

// ForBy is [Hook.For] by another column that leads to the shard, one of
// [sharding.Table].Also. A value that says nothing about the shard is refused
// with [sharding.ErrMissingKey].
func (h *Hook) ForBy(table, column string, value any) (*Shard, error) {
	l, err := h.routing(table)
	if err != nil {
		return nil, err
	}
	return h.find(l, aim{table: table, column: column, value: value})
}

// At returns the shard of a target, one of those that [sharding.Router.Targets]
// lists.
func (h *Hook) At(target sharding.Target) (*Shard, error) {
	l, err := h.routing(target.Table)
	if err != nil {
		return nil, err
	}
	table, ok := l.owners[target]
	if !ok {
		return nil, &sharding.RouteError{Op: "route", Table: target.String(), Err: sharding.ErrUnknownTable, Hint: "take a target of Router.Targets"}
	}
	return h.shard(l, aim{table: table, fixed: true}, target), nil
}

// routing returns the present layout.
func (h *Hook) routing(table string) (*layout, error) {
	if l := h.layout(); l != nil {
		return l, nil
	}
	return nil, &sharding.RouteError{Op: "route", Table: table, Err: sharding.ErrUnknownTable, Hint: "set Config.Router"}
}

// load has the router know where the tables of a migration are.
func (h *Hook) load(ctx context.Context) error {
	if h.router == nil {
		return nil
	}
	return h.router.Load(ctx)
}

func (h *Hook) shard(l *layout, a aim, target sharding.Target) *Shard {
	db := h.dbs[target.DB]
	return &Shard{hook: h, aim: a, bound: l.shard(a.table, target), db: db, conn: db}
}

// Target returns the shard's database and physical table.
func (s *Shard) Target() sharding.Target { return s.bound.target }

// DriverName returns Config.DriverName.
func (s *Shard) DriverName() string { return s.db.DriverName() }

// Rebind writes the placeholders of a query as the database wants them.
func (s *Shard) Rebind(query string) string { return s.db.Rebind(query) }

// Expand returns the query as it is sent to the shard: with physical names where
// tables are named, and every other byte as it was. A refusal is a
// [sharding.RouteError].
func (s *Shard) Expand(query string) (string, error) {
	x, err := s.expanded(query)
	return x.text, err
}

func (s *Shard) expanded(query string) (expanded, error) {
	x, found := s.bound.recall(query)
	if found {
		return x, nil
	}
	x, err := s.hook.expand(s.bound, query, s.hook.family)
	if err == nil {
		s.bound.keep(query, x)
	}
	return x, err
}

// Unguarded returns the *sqlx.DB or *sqlx.Tx that the shard sends to. Nothing is
// exchanged and nothing is refused there.
func (s *Shard) Unguarded() sqlx.ExtContext { return s.conn }

// Tx is a transaction on one database that is bound to a shard. It is safe for
// concurrent use as far as *sql.Tx is.
type Tx struct {
	// Shard is the shard it was begun for, in the transaction.
	*Shard
	tx *sqlx.Tx
}

// Begin begins a transaction on the shard that holds the row of the table with
// this sharding key, with the database's own isolation; [Shard.Begin] takes
// options. As with *sql.Tx the end of ctx rolls it back.
func (h *Hook) Begin(ctx context.Context, table string, key any) (*Tx, error) {
	if err := h.load(ctx); err != nil {
		return nil, err
	}
	s, err := h.For(table, key)
	if err != nil {
		return nil, err
	}
	return s.Begin(ctx, nil)
}

var errNested = errors.New("sqlxhook: a transaction is under way; Begin is for shards outside of one")

// Begin begins a transaction on the shard's database. opts may be nil.
func (s *Shard) Begin(ctx context.Context, opts *sql.TxOptions) (*Tx, error) {
	if s.conn != sqlx.ExtContext(s.db) {
		return nil, errNested
	}
	if err := s.hook.load(ctx); err != nil {
		return nil, err
	}
	s, err := s.present(ctx)
	if err != nil {
		return nil, err
	}
	tx, err := s.db.BeginTxx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &Tx{Shard: s.in(tx), tx: tx}, nil
}

func (s *Shard) in(tx *sqlx.Tx) *Shard {
	bound := *s
	bound.conn = tx
	return &bound
}

// For returns another shard in the same transaction. One of another database is
// refused with [sharding.ErrCrossDatabase], and one whose table a
// [sharding.Migration] has switched since t began with [sharding.ErrRouteMoved].
func (t *Tx) For(table string, key any) (*Shard, error) {
	s, err := t.hook.For(table, key)
	if err != nil {
		return nil, err
	}
	if s.bound.layout.onSource(table) != t.bound.layout.onSource(table) {
		return nil, &sharding.MovedError{Table: table, Err: sharding.ErrRouteMoved}
	}
	if s.db != t.db {
		return nil, &sharding.RouteError{
			Op: "statement on", Table: table, Err: sharding.ErrCrossDatabase,
			Hint: "the transaction is on " + t.Target().DB + ", the row on " + s.Target().String() + "; give each database a transaction of its own",
		}
	}
	return s.in(t.tx), nil
}

// Commit commits the transaction.
func (t *Tx) Commit() error { return sharding.SlotMoving(t.tx.Commit()) }

// Rollback rolls the transaction back; after Commit it is sql.ErrTxDone.
func (t *Tx) Rollback() error { return t.tx.Rollback() }
