package sqlxhook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// Config says what a [Hook] fills and where rows lie.
type Config struct {
	// Generators are the generators that keygen tags name. A tag that names
	// none of them is an error of the call that meets it.
	Generators keygen.Set

	// Mapper maps struct fields to column and parameter names. Set it to the
	// Mapper of your handles if you changed that. Defaults to the db tag and
	// sqlx.NameMapper, as sqlx does; sqlx.NameMapper is read by New.
	Mapper *reflectx.Mapper

	// MaxParams is the largest number of parameters of one statement, from 1 to
	// 65535; larger batches are split. Defaults to the limit of the handle's
	// database: 65535 for MySQL, MariaDB and PostgreSQL, 32766 for SQLite and
	// for databases that are not recognised.
	MaxParams int

	// DriverName is the database's family: "mysql", "mariadb", "sqlite" or
	// "postgres", or a driver's name that contains one of these. It stands in
	// for handles that do not tell: *sqlx.Conn never does, and "sqlmock" says
	// nothing. The handles that For and GroupBy return bear it. Required when
	// Router is set.
	DriverName string

	// Router places the rows of sharded tables. Statements that name a sharded
	// table are refused. Nil means that no table is sharded.
	Router *sharding.Router
}

// Hook executes named statements and fills generated keys. It is immutable and
// safe for concurrent use.
type Hook struct {
	generators keygen.Set
	mapper     *reflectx.Mapper
	maxParams  int
	family     family
	router     *sharding.Router
	shards     map[string]*sqlx.DB          // by the router's database names
	physical   map[string][]*sharding.Table // by physical table, in lower case
	plans      plans
}

// New returns a Hook. It sends nothing to any database.
func New(c Config) (*Hook, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("sqlxhook: %w", err)
	}
	h := &Hook{
		generators: c.Generators, mapper: c.Mapper, maxParams: c.MaxParams,
		family: familyOf(c.DriverName), router: c.Router,
		plans: plans{m: map[planKey]*plan{}},
	}
	if h.mapper == nil {
		h.mapper = reflectx.NewMapperFunc("db", sqlx.NameMapper)
	}
	if c.Router != nil {
		h.openShards(c.DriverName)
	}
	return h, nil
}

func (c Config) validate() error {
	var errs []error
	if c.MaxParams < 0 || c.MaxParams > 65535 {
		errs = append(errs, fmt.Errorf("MaxParams %d: must be from 1 to 65535, or 0 for the database's own limit", c.MaxParams))
	}
	if (c.DriverName != "" || c.Router != nil) && familyOf(c.DriverName) == unknown {
		errs = append(errs, fmt.Errorf("DriverName %q: must be or contain mysql, mariadb, sqlite or postgres; it is required with a Router", c.DriverName))
	}
	return errors.Join(errs...)
}

func (h *Hook) limit(f family) int {
	if h.maxParams > 0 {
		return h.maxParams
	}
	return f.maxParams()
}

// NamedExec executes a statement with parameters written :name, whose values
// come from arg: a struct, a map with string keys, a pointer to either, or a
// slice of any of these. It does what sqlx's NamedExec does, and for an INSERT
// or REPLACE it first fills the empty fields that carry a keygen tag, which
// must be among the inserted columns.
//
// For a slice the VALUES group is repeated; a batch with more parameters than a
// statement may have becomes several statements. Those are one transaction:
// that of e if it is an *sqlx.Tx, one of their own if it is an *sqlx.DB. On any
// other handle they are not atomic, and a failure behind the first is a
// [PartialError].
//
// Once a statement was sent the ids stay in the rows, also when it fails, as
// the database may have executed it. Before that an error leaves the rows as
// they were.
func (h *Hook) NamedExec(ctx context.Context, e Execer, query string, arg any) (Result, error) {
	return h.exec(ctx, e, planKey{query: query}, arg)
}

// Insert inserts one row or a slice of them into a table. The columns are the
// fields of the struct (without `db:"-"`, nested structs and slices of them) or
// the keys of the map, all of which are checked and quoted, as is the table. It
// fills keys, splits batches and treats errors like [Hook.NamedExec].
func (h *Hook) Insert(ctx context.Context, e Execer, table string, arg any) (Result, error) {
	return h.exec(ctx, e, planKey{query: table, insert: true}, arg)
}

// Fill only fills the empty keygen fields of one struct or a slice of them. On
// an error the rows are as they were.
func (h *Hook) Fill(ctx context.Context, arg any) error {
	r, err := rowsOf(arg)
	if err != nil {
		return fmt.Errorf("sqlxhook: %w", err)
	}
	keys, err := h.keysOf(r.typ)
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("%s: %w", r.typ, ErrNoKey)
	}
	if err == nil {
		_, err = fill(ctx, keys, &r)
	}
	if err != nil {
		return fmt.Errorf("sqlxhook: %w", err)
	}
	return nil
}

func (h *Hook) exec(ctx context.Context, e Execer, k planKey, arg any) (Result, error) {
	if e == nil {
		return Result{}, errors.New("sqlxhook: the handle is nil; pass an *sqlx.DB, *sqlx.Tx or *sqlx.Conn")
	}
	r, err := rowsOf(arg)
	if err != nil {
		return Result{}, fmt.Errorf("sqlxhook: %w", err)
	}
	k.typ, k.style = r.typ, styleOf(e)
	k.family = h.familyOf(e, k.style)
	p, err := h.plan(k, &r)
	if err != nil {
		return Result{}, fmt.Errorf("sqlxhook: %w", err)
	}
	res, err := p.exec(ctx, e, &r)
	if err != nil {
		return res, fmt.Errorf("sqlxhook: %w", err)
	}
	return res, nil
}

// plan returns the compiled plan, from the cache if it is there.
func (h *Hook) plan(k planKey, r *rows) (*plan, error) {
	cacheable := !k.insert || !isMap(k.typ) // a map's columns are its own
	if cacheable {
		if p := h.plans.get(k); p != nil {
			return p, nil
		}
	}
	full := k
	if k.insert {
		query, err := h.insertSQL(k, r)
		if err != nil {
			return nil, err
		}
		full.query = query
	}
	p, err := h.compile(full)
	if err == nil && cacheable {
		h.plans.put(k, p)
	}
	return p, err
}

// exec fills and sends. Only what fails before anything was sent is undone.
func (p *plan) exec(ctx context.Context, e Execer, r *rows) (Result, error) {
	if err := p.accepts(r); err != nil {
		return Result{}, err
	}
	f, err := fill(ctx, p.keys, r)
	if err != nil {
		return Result{}, err
	}
	var a args
	if err = p.place.check(e, r); err == nil {
		a, err = p.collect(r)
	}
	if err != nil {
		f.undo()
		return Result{}, err
	}
	affected, sent, err := p.send(ctx, e, &a, r.n)
	if err != nil && !sent {
		f.undo()
		return Result{}, err
	}
	return Result{IDs: ids(p.keys, r), RowsAffected: affected}, err
}

// accepts checks that the statement can take these rows.
func (p *plan) accepts(r *rows) error {
	if r.n > 1 && p.stmt.groups != 1 {
		return fmt.Errorf("%w: %d rows need exactly one VALUES (…) group, which is repeated; it has %d", ErrStatement, r.n, p.stmt.groups)
	}
	if p.missing == nil {
		return nil
	}
	empty, err := anyEmpty(p.keys, r)
	if err == nil && empty {
		err = p.missing
	}
	return err
}

// insertSQL writes the INSERT of a struct type, or of the maps in r.
func (h *Hook) insertSQL(k planKey, r *rows) (string, error) {
	columns, err := h.insertColumns(k.typ, r)
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
