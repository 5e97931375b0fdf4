// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql/driver"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// rows are the rows of one inner connection, passed on.
type rows struct {
	resultset.Described
	inner inner
	call  call[driver.Rows]
	tx    *transaction // in which they are read, or nil
}

var (
	_ driver.RowsNextResultSet = (*rows)(nil)
	_ resultset.DescribedRows  = (*rows)(nil)
)

// Close closes the rows and returns the connection to its pool.
func (r *rows) Close() error {
	in := r.inner
	if in.conn == nil {
		return nil // closed before
	}
	err := r.Rows.Close()
	r.tx.recordError(err)
	if r.call.own != nil {
		err = dialect.JoinErrors(err, r.call.own.Close())
	}
	in.memory.keepRows(r)
	return dialect.JoinErrors(err, in.release())
}

// Next returns the next row. Its error may be that of a deadlock, because servers send rows while they lock them.
func (r *rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err != nil && r.tx != nil && !resultset.IsEOF(err) {
		r.tx.recordError(err)
	}
	return err
}
