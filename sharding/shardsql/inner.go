// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// inner is a connection of an underlying pool.
type inner struct {
	conn   *sql.Conn
	kept   *kept   // nil if one statement has the connection, and releases it
	memory *memory // of a session whose statement is the only one that is executed, or nil
}

// kept holds the prepared statements of a connection that a transaction, or a session at home,
// holds across statements.
type kept struct{ prepared map[preparedFor]driver.Stmt }

// connect returns a connection of a pool, after a check that its settings are those of the home
// database. If a database cannot be reached, the error names it. Later errors of a database are the
// driver's own, because programs and libraries assert their types.
func (d *database) connect(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.replicas.leaveOut(ctx, pool, err, d.observer)
		}
		return nil, &unreachableError{d.nameOf(pool), err}
	}
	if err := d.checkSettings(ctx, pool, conn); err != nil {
		return nil, dialect.JoinErrors(err, conn.Close())
	}
	return conn, nil
}

// unreachableError is that of a pool that returned no connection.
type unreachableError struct {
	database string
	cause    error
}

func (e *unreachableError) Error() string { return e.database + ": " + e.cause.Error() }

func (e *unreachableError) Unwrap() error { return e.cause }

func isUnreachable(err error) bool {
	var e *unreachableError
	return errors.As(err, &e)
}

func (d *database) poolOrHome(name string) *sql.DB {
	if name == "" {
		return d.home
	}
	return d.router.DB(name)
}

// release returns the connection to its pool, unless a transaction or session holds it.
func (i inner) release() error {
	if i.kept != nil {
		return nil
	}
	return ignoreConnDone(i.conn.Close())
}

// leave returns a held connection to its pool.
func (i inner) leave() error {
	return ignoreConnDone(dialect.JoinErrors(i.forget(nil), i.conn.Close()))
}

// forget closes the prepared statements of the connection for a statement, or all of them if of is
// nil.
func (i inner) forget(of *statement) error {
	if i.kept == nil || len(i.kept.prepared) == 0 {
		return nil
	}
	return ignoreConnDone(i.conn.Raw(func(any) error { return i.kept.close(of) }))
}

// ignoreConnDone returns nil for sql.ErrConnDone, and err otherwise: a broken connection is closed already,
// so it needs no cleanup.
func ignoreConnDone(err error) error {
	if errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// raw calls sql.Conn.Raw. After a connection has broken, raw returns driver.ErrBadConn each time,
// as a driver does: database/sql sends a prepared statement again, and returns the last error.
func (i inner) raw(f func(any) error) error {
	err := i.conn.Raw(f)
	if errors.Is(err, sql.ErrConnDone) {
		return driver.ErrBadConn
	}
	return err
}

// valid reports whether the driver considers its connection usable.
func (i inner) valid() bool {
	err := i.raw(func(raw any) error {
		if v, ok := raw.(driver.Validator); ok && !v.IsValid() {
			return driver.ErrBadConn
		}
		return nil
	})
	return err == nil
}

// query returns rows that hold the connection until they are closed. of is the prepared statement
// that is executed, or nil.
func (i inner) query(ctx context.Context, of *statement, text string, args []driver.NamedValue) (*rows, error) {
	r := i.memory.takeRows()
	r.inner = i
	var err error
	if r.Rows, err = r.call.send(ctx, i, of, text, args); err != nil {
		i.memory.keepRows(r)
		return nil, dialect.JoinErrors(err, i.release())
	}
	return r, nil
}

// exec is query for a statement without rows.
func (i inner) exec(ctx context.Context, of *statement, text string, args []driver.NamedValue) (driver.Result, error) {
	c := i.memory.takeCall()
	result, err := c.send(ctx, i, of, text, args)
	if c.own != nil {
		err = dialect.JoinErrors(err, c.own.Close())
	}
	i.memory.keepCall(c)
	return result, dialect.JoinErrors(err, i.release())
}

// run executes a text without arguments.
func (i inner) run(ctx context.Context, text string) error {
	_, err := i.exec(ctx, nil, text, nil)
	return err
}

// A statement for one shard is sent on the driver's own connection, as database/sql would send it.
// Its rows are the driver's own, so nothing is copied.

// operation is a kind of execution by a driver: a query, or a statement without rows.
type operation[T any] struct {
	direct    func(driver.Conn, context.Context, string, []driver.NamedValue) (T, error) // driver.ErrSkip if the driver must prepare the text
	statement func(driver.Stmt, context.Context, []driver.NamedValue) (T, error)
}

var querying = operation[driver.Rows]{
	direct: func(on driver.Conn, ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
		if q, ok := on.(driver.QueryerContext); ok {
			return q.QueryContext(ctx, text, args)
		}
		return nil, driver.ErrSkip
	},
	statement: func(st driver.Stmt, ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
		if q, ok := st.(driver.StmtQueryContext); ok {
			return q.QueryContext(ctx, args)
		}
		return unnamed(ctx, args, st.Query) //nolint:staticcheck // drivers without contexts have nothing else
	},
}

var executing = operation[driver.Result]{
	direct: func(on driver.Conn, ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
		if e, ok := on.(driver.ExecerContext); ok {
			return e.ExecContext(ctx, text, args)
		}
		return nil, driver.ErrSkip
	},
	statement: func(st driver.Stmt, ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
		if e, ok := st.(driver.StmtExecContext); ok {
			return e.ExecContext(ctx, args)
		}
		return unnamed(ctx, args, st.Exec) //nolint:staticcheck // drivers without contexts have nothing else
	},
}

// call is an execution of a text with its arguments, as database/sql executes it on a driver's
// connection. It may be used again.
type call[T any] struct {
	operation operation[T]
	ctx       context.Context //nolint:containedctx // run's, which gets no arguments from sql.Conn.Raw
	kept      *kept           // of the connection; nil if it is not held
	of        *statement      // the prepared statement that is executed, or nil
	text      string
	args      []driver.NamedValue
	arguments arguments
	result    T
	own       driver.Stmt     // needed by the driver and not kept; the caller closes it after the rows
	raw       func(any) error // run, as a function that is made once
}

// send executes a text on a connection.
func (c *call[T]) send(ctx context.Context, on inner, of *statement, text string, args []driver.NamedValue) (T, error) {
	if c.raw == nil {
		c.raw = c.run
	}
	c.ctx, c.kept, c.of, c.text, c.args = ctx, on.kept, of, text, args
	c.arguments.own = on.memory != nil
	err := on.raw(c.raw)
	return c.result, err
}

// reset forgets an execution, and keeps the operation and the function.
func (c *call[T]) reset() {
	var none T
	c.ctx, c.kept, c.of, c.text, c.args, c.result, c.own = nil, nil, nil, "", nil, none, nil
	c.arguments = arguments{}
}

func (c *call[T]) run(raw any) (err error) {
	on := raw.(driver.Conn)
	if st := c.kept.find(c.of, c.text); st != nil {
		return c.with(on, st)
	}
	checked, err := c.arguments.checked(on, nil, c.args)
	if err != nil {
		return err
	}
	if c.of == nil || len(c.args) > 0 && !c.of.isPrepared() {
		if c.result, err = c.operation.direct(on, c.ctx, c.text, checked); !errors.Is(err, driver.ErrSkip) {
			return err
		}
	}
	st, err := prepareRaw(c.ctx, on, c.text)
	if err != nil {
		return err
	}
	if err := c.with(on, st); err != nil {
		return dialect.JoinErrors(err, st.Close())
	}
	if !c.kept.keep(c.of, c.text, st) {
		c.own = st
	}
	return nil
}

// with executes a prepared statement.
func (c *call[T]) with(on driver.Conn, st driver.Stmt) error {
	checked, err := c.arguments.checked(on, st, c.args)
	if err != nil {
		return err
	}
	c.result, err = c.operation.statement(st, c.ctx, checked)
	return err
}

// memory is what one statement of a session leaves for the next, which then need not allocate it.
// It is used by statements for one database, of which a session executes one at a time. A nil
// memory keeps nothing.
type memory struct {
	values []any // empty
	rows   *rows
	call   *call[driver.Result]
}

// mostValues is the number of arguments of the largest statement whose list is kept.
const mostValues = 1 << 12 // 64 KiB

// takeValues returns an empty list with room for n values.
func (m *memory) takeValues(n int) []any {
	list := slices.Grow(m.values, n)
	m.values = nil
	return list
}

func (m *memory) keepValues(list []any) {
	clear(list)
	if m.values = list[:0]; cap(list) > mostValues {
		m.values = nil
	}
}

func (m *memory) takeRows() *rows {
	if m == nil || m.rows == nil {
		return &rows{call: call[driver.Rows]{operation: querying}}
	}
	r := m.rows
	m.rows = nil
	return r
}

// keepRows is called after the rows were closed.
func (m *memory) keepRows(r *rows) {
	if m != nil {
		r.Rows, r.inner, r.tx = nil, inner{}, nil
		r.call.reset()
		m.rows = r
	}
}

func (m *memory) takeCall() *call[driver.Result] {
	if m == nil || m.call == nil {
		return &call[driver.Result]{operation: executing}
	}
	c := m.call
	m.call = nil
	return c
}

func (m *memory) keepCall(c *call[driver.Result]) {
	if m != nil {
		c.reset()
		m.call = c
	}
}

func prepareRaw(ctx context.Context, on driver.Conn, text string) (driver.Stmt, error) {
	if p, ok := on.(driver.ConnPrepareContext); ok {
		return p.PrepareContext(ctx, text)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return on.Prepare(text)
}

// unnamed calls a driver that supports neither named arguments nor contexts.
func unnamed[T any](ctx context.Context, args []driver.NamedValue, ask func([]driver.Value) (T, error)) (none T, err error) {
	if err := ctx.Err(); err != nil {
		return none, err
	}
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return none, errors.New("shardsql: the driver does not support named parameters")
		}
		values[i] = a.Value
	}
	return ask(values)
}

// value calls a driver.Valuer once. A Valuer that returns another value on each call would
// otherwise be routed by one value and stored with another. A nil pointer becomes NULL, as it does in
// database/sql, because a NULL has a route of its own.
func value(a *driver.NamedValue) (err error) {
	switch a.Value.(type) {
	case nil, int64, int, string, []byte, bool, float64, time.Time: // nearly all arguments
		return nil
	}
	v, isValuer := a.Value.(driver.Valuer)
	if of := reflect.ValueOf(a.Value); of.Kind() == reflect.Pointer && of.IsNil() && (!isValuer || of.Type().Elem().Implements(valuer)) {
		a.Value = nil
		return nil
	}
	if isValuer {
		a.Value, err = v.Value()
	}
	return err
}

var valuer = reflect.TypeFor[driver.Valuer]()

// textArgs returns the arguments of a text that goes to one database.
func textArgs(to *plan.Route, args []driver.NamedValue) []driver.NamedValue {
	if to.Args == nil {
		return args
	}
	return chosen(args, to.Args)
}

// arguments converts arguments to the inner driver's form.
type arguments struct {
	one driver.NamedValue
	own bool // only this execution has the list, so that an integer can be converted in it
}

// checked returns the arguments in the form that the inner driver requires. It uses the checker of
// the statement, otherwise that of the connection, otherwise database/sql's own conversion. It
// copies the arguments only if one of them becomes another value, because the statement may be routed
// again. A list is not used again: a driver may keep it, as it may keep those of database/sql.
func (m *arguments) checked(on driver.Conn, st driver.Stmt, args []driver.NamedValue) ([]driver.NamedValue, error) {
	checker, ok := st.(driver.NamedValueChecker)
	if !ok {
		checker, _ = on.(driver.NamedValueChecker)
	}
	columns, _ := st.(driver.ColumnConverter) //nolint:staticcheck // older drivers have it
	same, list := true, []driver.NamedValue(nil)
	for i := range args {
		arg := &args[i]
		if same && checker == nil && columns == nil && arg.Ordinal == i+1 && m.isValue(arg) {
			continue
		}
		number := i + 1
		if !same {
			number = len(list) + 1
		}
		done, err := m.convert(checker, columns, arg, number, same && m.own)
		if done {
			continue
		}
		removed := err != nil && errors.Is(err, driver.ErrRemoveArgument)
		if err != nil && !removed {
			return nil, err
		}
		if same && (removed || !sameArgument(&m.one, arg)) {
			same, list = false, append(make([]driver.NamedValue, 0, len(args)), args[:i]...)
		}
		if !same && !removed {
			list = append(list, m.one)
		}
	}
	if same {
		return args, nil
	}
	return list, nil
}

// isValue reports whether a driver takes an argument as it is. An int, the most frequent other argument, becomes
// an int64 as in database/sql, if that is allowed.
func (m *arguments) isValue(arg *driver.NamedValue) bool {
	if n, ok := arg.Value.(int); ok && m.own {
		arg.Value = int64(n)
		return true
	}
	return driver.IsValue(arg.Value)
}

// convert converts an argument into m.one. If that is allowed, it converts it in its list instead, and is done
// if it is the same argument or has become an int64 of the same value. Otherwise the list keeps it.
func (m *arguments) convert(checker driver.NamedValueChecker, columns driver.ColumnConverter, arg *driver.NamedValue, number int, inList bool) (done bool, err error) { //nolint:staticcheck // as above
	given, to := *arg, arg
	if inList = inList && arg.Ordinal == number; !inList {
		m.one, to = given, &m.one
		to.Ordinal = number
	}
	err = convert(checker, columns, to)
	if !inList {
		return false, err
	}
	if err == nil && (sameArgument(&given, arg) || widened(&given, arg)) {
		return true, nil
	}
	m.one, *arg = *arg, given
	return false, err
}

func convert(checker driver.NamedValueChecker, columns driver.ColumnConverter, a *driver.NamedValue) (err error) { //nolint:staticcheck // as above
	if checker != nil {
		if err := checker.CheckNamedValue(a); err == nil || !errors.Is(err, driver.ErrSkip) {
			return err
		}
	}
	var converter driver.ValueConverter = driver.DefaultParameterConverter
	if columns != nil {
		converter = columns.ColumnConverter(a.Ordinal - 1)
	}
	a.Value, err = converter.ConvertValue(a.Value)
	return err
}

// widened reports whether an argument is an integer of Go that was converted to an int64 of the same
// value, as most drivers do. The statement has the same route with both.
func widened(from, to *driver.NamedValue) bool {
	now, ok := to.Value.(int64)
	if !ok || from.Ordinal != to.Ordinal || from.Name != to.Name {
		return false
	}
	switch was := from.Value.(type) {
	case int:
		return int64(was) == now
	case uint:
		return now >= 0 && uint64(was) == uint64(now)
	}
	return false
}

// sameArgument reports whether two arguments are the same. It reports false for types that a driver need
// not support.
func sameArgument(a, b *driver.NamedValue) bool {
	if a.Ordinal != b.Ordinal || a.Name != b.Name {
		return false
	}
	switch x := a.Value.(type) {
	case nil, int64, float64, bool, string, time.Time:
		return a.Value == b.Value
	case []byte:
		y, ok := b.Value.([]byte)
		return ok && (x == nil) == (y == nil) && bytes.Equal(x, y)
	}
	return false
}
