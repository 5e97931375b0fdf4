// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Config says what a [Hook] fills and where rows lie.
type Config struct {
	// Generators are the generators that keygen tags name. A tag that names
	// none of them is an error of the call that meets it.
	Generators keygen.Set

	// Mapper maps struct fields to column and parameter names. Defaults to the
	// Mapper of the *sqlx.DB, *sqlx.Tx or *sqlx.Conn that a call is given, and
	// otherwise to the db tag and sqlx.NameMapper, which is read by New.
	Mapper *reflectx.Mapper

	// MaxParams is the largest number of parameters of one statement, from 1 to
	// 65535; larger batches are split. Defaults to the limit of the handle's
	// database: 65535 for MySQL, MariaDB and PostgreSQL, 32766 for SQLite and
	// for databases that are not recognised. Where a driver's time to bind them
	// grows with the square of their number, as that of modernc.org/sqlite does, 300
	// makes large batches more than twice as fast.
	MaxParams int

	// MaxBytes is the largest statement, text and arguments together, in bytes;
	// larger batches are split. Texts count double, for the escapes they may
	// need. Set it when the server's max_allowed_packet is smaller than the
	// default or much larger. Defaults to 4 MiB for MySQL and MariaDB, the lowest
	// value they are installed with; to 1,000,000 for SQLite, whose limit is
	// about the text alone, and for databases that are not recognised; and to
	// none for PostgreSQL, which takes a gigabyte.
	MaxBytes int

	// DriverName is the database's family: "mysql", "mariadb", "sqlite" or
	// "postgres", or a driver's name that contains one of these. It stands in
	// for handles that do not tell: *sqlx.Conn never does, and "sqlmock" says
	// nothing.
	DriverName string

	// Router is that of the routed database (see package shardsql). With it, generated
	// ids of sharded tables carry the slot of their rows ([sharding.Table].Also), and
	// a table that is being migrated is numbered by its source until the switch. Nil
	// means that keys are filled without regard to tables.
	Router *sharding.Router
}

// Hook executes named statements and fills generated keys. It is safe for
// concurrent use: all that changes are its caches.
type Hook struct {
	generators keygen.Set
	mapper     *reflectx.Mapper
	ownMapper  bool // mapper was configured
	maxParams  int
	maxBytes   int
	family     family
	router     *sharding.Router
	plans      plans
	texts      texts
	lastDriver atomic.Pointer[knownDriver]
}

// New returns a Hook. It sends nothing to any database.
func New(c Config) (*Hook, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("sqlxhook: %w", err)
	}
	h := &Hook{
		generators: c.Generators, mapper: c.Mapper, ownMapper: c.Mapper != nil,
		maxParams: c.MaxParams, maxBytes: c.MaxBytes,
		family: familyOf(c.DriverName), router: c.Router,
		plans: plans{m: map[planKey]*plan{}}, texts: texts{m: map[batch]string{}},
	}
	if h.mapper == nil {
		h.mapper = reflectx.NewMapperFunc("db", sqlx.NameMapper)
	}
	return h, nil
}

func (c Config) validate() error {
	var errs []error
	if c.MaxParams < 0 || c.MaxParams > 65535 {
		errs = append(errs, fmt.Errorf("MaxParams %d: must be from 1 to 65535, or 0 for the database's own limit", c.MaxParams))
	}
	if c.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("MaxBytes %d: must be positive, or 0 for what the database takes", c.MaxBytes))
	}
	if err := c.Generators.Check(); err != nil {
		errs = append(errs, fmt.Errorf("Config.Generators: %w", err))
	}
	if c.DriverName != "" && familyOf(c.DriverName) == unknown {
		errs = append(errs, fmt.Errorf("DriverName %q: must be or contain mysql, mariadb, sqlite or postgres", c.DriverName))
	}
	return errors.Join(errs...)
}

func (h *Hook) limitsOf(f family) limits {
	l := f.limits()
	if h.maxParams > 0 {
		l.params = h.maxParams
	}
	if h.maxBytes > 0 {
		l.bytes = h.maxBytes
	}
	return l
}

// NamedExec executes a statement with parameters written :name, whose values
// come from arg: a struct, a map with string keys, a pointer to either, or a
// slice of any of these. It does what sqlx's NamedExec does, and for an INSERT
// or REPLACE it first fills the empty fields that carry a keygen tag, which
// must be among the inserted columns.
//
// For a slice the VALUES group is repeated; a batch with more parameters or
// bytes than a statement may have becomes several statements. Those are one transaction:
// that of e if it is an *sqlx.Tx, one of their own if it is an *sqlx.DB. On any
// other handle they are not atomic, and a failure behind the first is a
// [PartialError].
//
// Once a statement was sent the ids stay in the rows, also when it fails, as
// the database may have executed it. Before that, and when its table is missing,
// an error leaves the rows as they were.
func (h *Hook) NamedExec(ctx context.Context, e Execer, query string, arg any) (Result, error) {
	return h.exec(ctx, e, query, false, arg)
}

// NamedQuery sends a statement that returns rows, INSERT … RETURNING or a SELECT,
// and returns what sqlx's NamedQuery returns. Parameters, keys and errors are
// those of [Hook.NamedExec], but a batch is never split: [ErrTooManyRows] says
// that it is too large for one statement, before anything is sent.
//
// Databases need not return the rows in the order of the argument; the rows
// themselves bear their keys.
func (h *Hook) NamedQuery(ctx context.Context, q Queryer, query string, arg any) (*sqlx.Rows, error) {
	if nilness.Is(q) {
		return nil, errNoHandle
	}
	for {
		var c call
		err := h.prepare(ctx, &c, q, query, false, arg)
		if err == nil {
			var found *sqlx.Rows
			if found, err = c.query(ctx, q); err == nil {
				return found, nil
			}
		}
		if !h.refills(&c, err) {
			return nil, fmt.Errorf("sqlxhook: %w", err)
		}
	}
}

// Insert inserts one row or a slice of them into a table. The columns are the
// fields of the struct (without `db:"-"`, nested structs and slices of them, but
// with structs that are a driver.Valuer or an encoding.TextMarshaler) or the keys of
// the map, all of which are checked and quoted, as is the table. It fills keys,
// splits batches and treats errors like [Hook.NamedExec].
func (h *Hook) Insert(ctx context.Context, e Execer, table string, arg any) (Result, error) {
	return h.exec(ctx, e, table, true, arg)
}

// Fill only fills the empty keygen fields of one struct or a slice of them. On
// an error the rows are as they were.
func (h *Hook) Fill(ctx context.Context, arg any) error {
	var r rows
	if err := r.take(arg); err != nil {
		return fmt.Errorf("sqlxhook: %w", err)
	}
	keys, err := h.keysOf(h.mapper, r.typ)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%s: %w", r.typ, ErrNoKey)
	}
	if err == nil {
		err = new(filling).fill(ctx, keys, &r)
	}
	if err != nil {
		return fmt.Errorf("sqlxhook: %w", err)
	}
	return nil
}

var errNoHandle = fmt.Errorf("sqlxhook: the handle is nil: %w; pass an *sqlx.DB, *sqlx.Tx or *sqlx.Conn", ErrNil)

func (h *Hook) exec(ctx context.Context, e Execer, query string, insert bool, arg any) (Result, error) {
	if nilness.Is(e) {
		return Result{}, errNoHandle
	}
	_, own := e.(*sqlx.DB)
	for {
		var c call
		var res Result
		sent := false
		err := h.prepare(ctx, &c, e, query, insert, arg)
		if err == nil {
			if res, sent, err = c.exec(ctx, e); err == nil {
				return res, nil
			}
		}
		// A batch's own transaction that met a table which had moved begins anew.
		if moved := own && errors.Is(err, sharding.ErrRouteMoved); sent || !moved && !h.refills(&c, err) {
			return res, fmt.Errorf("sqlxhook: %w", err)
		}
	}
}

// refills reports whether a call that did nothing failed because the database numbers
// no rows any more, or does so again, so that the keys are to be filled otherwise.
func (h *Hook) refills(c *call, err error) bool {
	other := errors.Is(err, sharding.ErrNotNumbered) && c.plan.numbered != nil || errors.Is(err, writehint.ErrNumbered)
	return other && h.router.Snapshot() != c.plan.key.snapshot
}

// prepare does all of a call that comes before the first statement is sent. On an
// error the rows are as they were.
func (h *Hook) prepare(ctx context.Context, c *call, e rebinder, query string, insert bool, arg any) (err error) {
	if err = c.rows.take(arg); err != nil {
		return err
	}
	k := h.keyOfCall(e, query, insert, &c.rows)
	if h.router != nil && !sharding.HintOf(ctx).Unsharded {
		k.snapshot = h.router.Snapshot()
	}
	c.plan, err = h.plan(&k, &c.rows)
	if err == nil && c.plan.unread() {
		if err = h.router.Load(ctx); err == nil {
			k.snapshot = h.router.Snapshot()
			c.plan, err = h.plan(&k, &c.rows)
		}
	}
	if err != nil {
		return err
	}
	return c.prepare(ctx)
}

// unread reports whether nobody has read yet which place serves the table.
func (p *plan) unread() bool {
	if p.table == nil {
		return false
	}
	_, err := p.table.Everywhere()
	return errors.Is(err, sharding.ErrRouteUnread)
}

// keyOfCall returns the key of the call's plan. With insert, query is a table's
// name.
func (h *Hook) keyOfCall(e rebinder, query string, insert bool, r *rows) planKey {
	on := h.handleOf(e)
	return planKey{query: query, typ: r.typ, mapper: on.mapper, style: on.style, insert: insert, family: on.family}
}

// plan returns the compiled plan, from the cache if it is there.
func (h *Hook) plan(k *planKey, r *rows) (*plan, error) {
	cacheable := !k.insert || !isMap(k.typ) // a map's columns are its own
	if cacheable {
		if p := h.plans.get(k); p != nil {
			return p, nil
		}
	}
	query := k.query
	if k.insert {
		var err error
		if query, err = insertSQL(k, r); err != nil {
			return nil, err
		}
	}
	p, err := h.compile(*k, query)
	if err == nil && cacheable {
		p.texts = &h.texts
		h.plans.put(p)
	}
	return p, err
}

// accepts checks that the statement can take these rows.
func (p *plan) accepts(r *rows) error {
	if r.n > 1 && p.stmt.groups != 1 {
		return fmt.Errorf("%w: %d rows need exactly one VALUES (…) group, which is repeated; it has %d", ErrStatement, r.n, p.stmt.groups)
	}
	for i := 0; p.missing != nil && i < len(p.keys); i++ {
		if empty, err := p.keys[i].empty(r); err != nil || len(empty) > 0 {
			return cmp.Or(err, p.missing)
		}
	}
	return nil
}

// insertSQL writes the INSERT of a struct type, or of the maps in r.
func insertSQL(k *planKey, r *rows) (string, error) {
	if k.family == unknown {
		return "", ErrDriver
	}
	columns, err := insertColumns(k.mapper, k.typ, r)
	if err != nil {
		return "", err
	}
	table, err := k.family.quote(k.query)
	if err != nil {
		return "", fmt.Errorf("table %w", err)
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		if quoted[i], err = k.family.quote(c); err != nil {
			return "", fmt.Errorf("column %w", err)
		}
	}
	return "INSERT INTO " + table + " (" + strings.Join(quoted, ",") + ") VALUES (:" + strings.Join(columns, ",:") + ")", nil
}
