// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/shardid/shardid/internal/dialect"
)

// Conn is a connection of an underlying pool.
type Conn struct {
	SQL    *sql.Conn
	Kept   *Kept   // nil if one statement has the connection, and releases it
	Memory *Memory // of a session whose statement is the only one that is executed, or nil
}

// Release returns the connection to its pool, unless a transaction or session holds it.
func (i Conn) Release() error {
	if i.Kept != nil {
		return nil
	}
	return ignoreConnDone(i.SQL.Close())
}

// Leave returns a held connection to its pool.
func (i Conn) Leave() error {
	return ignoreConnDone(dialect.JoinErrors(i.Forget(nil), i.SQL.Close()))
}

// Forget closes the prepared statements of the connection for a statement, or all of them if of is
// nil.
func (i Conn) Forget(of *Statement) error {
	if i.Kept == nil || len(i.Kept.prepared) == 0 {
		return nil
	}
	return ignoreConnDone(i.SQL.Raw(func(any) error { return i.Kept.close(of) }))
}

// ignoreConnDone returns nil for sql.ErrConnDone, and err otherwise: a broken connection is closed already,
// so it needs no cleanup.
func ignoreConnDone(err error) error {
	if errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// Raw calls sql.Conn.Raw. After a connection has broken, Raw returns driver.ErrBadConn each time,
// as a driver does: database/sql sends a prepared statement again, and returns the last error.
func (i Conn) Raw(f func(any) error) error {
	err := i.SQL.Raw(f)
	if errors.Is(err, sql.ErrConnDone) {
		return driver.ErrBadConn
	}
	return err
}

// Valid reports whether the driver considers its connection usable.
func (i Conn) Valid() bool {
	err := i.Raw(func(raw any) error {
		if v, ok := raw.(driver.Validator); ok && !v.IsValid() {
			return driver.ErrBadConn
		}
		return nil
	})
	return err == nil
}

// Query returns rows that hold the connection until they are closed. of is the prepared statement
// that is executed, or nil.
func (i Conn) Query(ctx context.Context, of *Statement, text string, args []driver.NamedValue) (*Rows, error) {
	r := i.Memory.takeRows()
	r.inner = i
	var err error
	if r.Rows, err = r.call.send(ctx, i, of, text, args); err != nil {
		i.Memory.keepRows(r)
		return nil, dialect.JoinErrors(err, i.Release())
	}
	return r, nil
}

// Exec is Query for a statement without rows.
func (i Conn) Exec(ctx context.Context, of *Statement, text string, args []driver.NamedValue) (driver.Result, error) {
	c := i.Memory.takeCall()
	result, err := c.send(ctx, i, of, text, args)
	if c.own != nil {
		err = dialect.JoinErrors(err, c.own.Close())
	}
	i.Memory.keepCall(c)
	return result, dialect.JoinErrors(err, i.Release())
}

// Run executes texts without arguments, until one fails.
func (i Conn) Run(ctx context.Context, texts ...string) error {
	for _, text := range texts {
		if _, err := i.Exec(ctx, nil, text, nil); err != nil {
			return err
		}
	}
	return nil
}

// Statement says how connections prepare a statement of the program. Its address is its identity: texts stay prepared
// on a held connection for one Statement, until they are forgotten for it. A nil *Statement stands for a text that the
// program has not prepared.
type Statement struct {
	Prepares bool // a database must prepare it, although its driver may accept the text with its arguments
	Once     bool // it is prepared for one execution
}

// Kept holds the prepared statements of a connection that a transaction, or a session at home,
// holds across statements.
type Kept struct{ prepared map[preparedFor]driver.Stmt }

// preparedFor is the key of a prepared text.
type preparedFor struct {
	statement *Statement
	text      string
}

// maxKept is the largest number of statements that are kept prepared on a held connection.
const maxKept = 100

// find returns the prepared statement of a text, nil if there is none.
func (k *Kept) find(of *Statement, text string) driver.Stmt {
	if k == nil || of == nil {
		return nil
	}
	return k.prepared[preparedFor{of, text}]
}

// keep reports whether st stays prepared until its outer statement is closed or the connection is
// no longer held.
func (k *Kept) keep(of *Statement, text string, st driver.Stmt) bool {
	if k == nil || of == nil || of.Once || len(k.prepared) >= maxKept {
		return false
	}
	if k.prepared == nil {
		k.prepared = map[preparedFor]driver.Stmt{}
	}
	k.prepared[preparedFor{of, text}] = st
	return true
}

// close closes the prepared statements of an outer statement, or all if of is nil.
func (k *Kept) close(of *Statement) error {
	var errs []error
	for key, st := range k.prepared {
		if of == nil || key.statement == of {
			errs = append(errs, st.Close())
			delete(k.prepared, key)
		}
	}
	return errors.Join(errs...)
}
