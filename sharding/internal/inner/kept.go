// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"database/sql/driver"
	"errors"
)

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
