// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"database/sql/driver"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// Rows are the rows of one inner connection, passed on.
type Rows struct {
	resultset.Described
	inner Conn
	call  call[driver.Rows]
	// Failing is told about the errors of the rows, until they are closed. Nil means nobody.
	Failing interface{ RecordError(err error) }
}

var (
	_ driver.RowsNextResultSet = (*Rows)(nil)
	_ resultset.DescribedRows  = (*Rows)(nil)
)

// Close closes the rows and returns the connection to its pool.
func (r *Rows) Close() error {
	in := r.inner
	if in.SQL == nil {
		return nil // closed before
	}
	err := r.Rows.Close()
	if r.Failing != nil {
		r.Failing.RecordError(err)
	}
	if r.call.own != nil {
		err = dialect.JoinErrors(err, r.call.own.Close())
	}
	in.Memory.keepRows(r)
	return dialect.JoinErrors(err, in.Release())
}

// Next returns the next row. Its error may be that of a deadlock, because servers send rows while they lock them.
func (r *Rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err != nil && r.Failing != nil && !resultset.IsEOF(err) {
		r.Failing.RecordError(err)
	}
	return err
}
