// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/internal/writehint"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Config configures a [Hook]: its generators, its limits and the router.
type Config struct {
	// Generators are the generators that keygen tags name. If a tag names another generator,
	// the call that reads the tag fails.
	Generators keygen.Set

	// Mapper maps struct fields to column and parameter names. Defaults to the Mapper of the
	// *sqlx.DB, *sqlx.Tx or *sqlx.Conn of the call. Other handles use the db tag and
	// sqlx.NameMapper, which New reads once.
	Mapper *reflectx.Mapper

	// MaxParams is the largest number of parameters of one statement, from 1 to 65535;
	// larger batches are split. Defaults to the limit of the handle's database: 65535 for
	// MySQL, MariaDB and PostgreSQL, 32766 for SQLite and for databases that are not
	// recognised. Some drivers, such as modernc.org/sqlite, need time that grows with the
	// square of the number of parameters. With them a MaxParams of 300 makes large batches
	// more than twice as fast.
	MaxParams int

	// MaxBytes is the largest size of one statement in bytes, text and arguments together;
	// larger batches are split. Strings and byte slices count double, because their escapes
	// may double them. Set MaxBytes when the server's max_allowed_packet is smaller than the
	// default or much larger. The default is 4 MiB for MySQL and MariaDB, the lowest
	// max_allowed_packet with which they are installed. It is 1,000,000 for SQLite, whose
	// limit applies to the text alone, and for databases that are not recognised. PostgreSQL
	// accepts a gigabyte, so it has no limit here.
	MaxBytes int

	// DriverName is the kind of the database: "mysql", "mariadb", "sqlite" or "postgres", or
	// a driver's name that contains one of these. It is used for handles from which the kind
	// cannot be read: *sqlx.Conn has no driver name, and the name "sqlmock" names no
	// database.
	DriverName string

	// Router is the router of the routed database (see package shardsql). With it, generated
	// ids of sharded tables carry the slot of their rows ([sharding.Table].Also), and the
	// source of a migration numbers the rows of its table until the switch. Without a
	// Router, keys are filled whatever the table.
	Router *sharding.Router
}

// Hook executes named statements and fills generated keys. It is safe for concurrent use:
// nothing but its caches changes.
type Hook struct {
	generators keygen.Set
	mapper     *reflectx.Mapper
	ownMapper  bool // mapper is Config.Mapper
	maxParams  int
	maxBytes   int
	database   database
	router     *sharding.Router
	plans      plans
	texts      texts
}

// New returns a Hook. It sends nothing to any database. It fails if the configuration is
// invalid.
func New(c Config) (*Hook, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("sqlxhook: %w", err)
	}
	h := &Hook{
		generators: c.Generators, mapper: c.Mapper, ownMapper: c.Mapper != nil,
		maxParams: c.MaxParams, maxBytes: c.MaxBytes,
		database: databaseOf(c.DriverName), router: c.Router,
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
	if c.DriverName != "" && databaseOf(c.DriverName) == unknown {
		errs = append(errs, fmt.Errorf("DriverName %q: must be or contain mysql, mariadb, sqlite or postgres", c.DriverName))
	}
	return errors.Join(errs...)
}

func (h *Hook) limitsOf(f database) limits {
	l := f.limits()
	if h.maxParams > 0 {
		l.params = h.maxParams
	}
	if h.maxBytes > 0 {
		l.bytes = h.maxBytes
	}
	return l
}

// NamedExec executes a statement with parameters written :name, whose values come from arg:
// a struct, a map with string keys, a pointer to either, or a slice of any of these. It does
// what sqlx's NamedExec does. For an INSERT or REPLACE it first fills the empty fields that
// carry a keygen tag; their columns must be among the inserted columns.
//
// For a slice, the VALUES group is repeated for each row. A batch with more parameters or
// bytes than one statement may have becomes several statements in one transaction. If e is
// an *sqlx.Tx, that is the transaction; if e is an *sqlx.DB, NamedExec begins one. On any
// other handle the statements are not atomic, and if a statement after the first fails, the
// error is a [PartialError].
//
// Once a statement was sent, the ids stay in the rows, even when the statement fails,
// because the database may have executed it. An error before that leaves the rows unchanged,
// and so does a missing table.
func (h *Hook) NamedExec(ctx context.Context, e Execer, query string, arg any) (Result, error) {
	return h.exec(ctx, e, query, false, arg)
}

// NamedQuery sends a statement that returns rows, INSERT … RETURNING or a SELECT, and
// returns what sqlx's NamedQuery returns. Parameters, keys and errors are those of
// [Hook.NamedExec], but a batch is never split. If it is too large for one statement,
// NamedQuery fails with [ErrTooManyRows] and sends nothing.
//
// Databases may return the rows in another order than that of the argument. Use the keys in
// the returned rows to match them.
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

// Insert inserts one row or a slice of rows into a table. The columns of a struct are its
// fields. Fields tagged `db:"-"`, nested structs and slices of structs are no columns; a
// struct that is a driver.Valuer or an encoding.TextMarshaler is one. The columns of a map
// are its keys. Insert checks and quotes the names of the columns and of the table. It fills
// keys, splits batches and returns errors like [Hook.NamedExec].
func (h *Hook) Insert(ctx context.Context, e Execer, table string, arg any) (Result, error) {
	return h.exec(ctx, e, table, true, arg)
}

// Fill fills the empty keygen fields of one struct or of a slice of structs, and sends no
// statement. On an error the rows are unchanged.
func (h *Hook) Fill(ctx context.Context, arg any) error {
	var r rows
	if err := r.read(arg); err != nil {
		return fmt.Errorf("sqlxhook: %w", err)
	}
	keys, err := h.keysOf(h.mapper, r.typ)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%s: %w", r.typ, ErrNoKey)
	}
	if err == nil {
		err = new(filledKeys).fill(ctx, keys, &r)
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
		// A transaction that exec began itself is begun again when a table has moved.
		if moved := own && errors.Is(err, sharding.ErrRouteMoved); sent || !moved && !h.refills(&c, err) {
			return res, fmt.Errorf("sqlxhook: %w", err)
		}
	}
}

// refills reports whether the call must fill its keys again, in the other way. That is so if
// the call did nothing, because the database no longer numbers the rows, or numbers them
// again.
func (h *Hook) refills(c *call, err error) bool {
	other := errors.Is(err, sharding.ErrNotNumbered) && c.plan.numbered != nil || errors.Is(err, writehint.ErrNumbered)
	return other && h.router.Snapshot() != c.plan.key.snapshot
}

// prepare does all work of a call that precedes its first statement. On an error the rows
// are unchanged.
func (h *Hook) prepare(ctx context.Context, c *call, e rebinder, query string, insert bool, arg any) (err error) {
	if err = c.rows.read(arg); err != nil {
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

// unread reports whether the router has not read yet which database serves the table.
func (p *plan) unread() bool {
	if p.table == nil {
		return false
	}
	_, err := p.table.Everywhere()
	return errors.Is(err, sharding.ErrRouteUnread)
}

// keyOfCall returns the key of the call's plan. If insert is set, query is the name of a
// table.
func (h *Hook) keyOfCall(e rebinder, query string, insert bool, r *rows) planKey {
	style := styleOf(e)
	return planKey{query: query, typ: r.typ, mapper: h.mapperOf(e), style: style, insert: insert, database: h.databaseOf(driverName(e), style)}
}

// plan returns the compiled plan, from the cache if it is there, and caches a new one.
func (h *Hook) plan(k *planKey, r *rows) (*plan, error) {
	cacheable := !k.insert || !isMap(k.typ) // two maps of one type may have different columns
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

// accepts checks that the statement can insert these rows.
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

// insertSQL returns the INSERT for a struct type, or for the maps in r.
func insertSQL(k *planKey, r *rows) (string, error) {
	if k.database == unknown {
		return "", ErrDriver
	}
	columns, err := insertColumns(k.mapper, k.typ, r)
	if err == nil && len(columns) == 0 {
		err = fmt.Errorf("%s has no columns: %w", k.typ, ErrArgument)
	}
	if err != nil {
		return "", err
	}
	table, err := k.database.quote(k.query)
	if err != nil {
		return "", fmt.Errorf("table %w", err)
	}
	quoted := make([]string, len(columns))
	for i, c := range columns {
		if quoted[i], err = k.database.quote(c); err != nil {
			return "", fmt.Errorf("column %w", err)
		}
	}
	return "INSERT INTO " + table + " (" + strings.Join(quoted, ",") + ") VALUES (:" + strings.Join(columns, ",:") + ")", nil
}
