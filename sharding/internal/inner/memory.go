// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"database/sql/driver"
	"slices"
)

// Memory is what one statement of a session leaves for the next, which then need not allocate it.
// It is used by statements for one database, of which a session executes one at a time. A nil
// memory keeps nothing.
type Memory struct {
	values []any // empty
	rows   *Rows
	call   *call[driver.Result]
}

// mostValues is the number of arguments of the largest statement whose list is kept.
const mostValues = 1 << 12 // 64 KiB

// TakeValues returns an empty list with room for n values.
func (m *Memory) TakeValues(n int) []any {
	list := slices.Grow(m.values, n)
	m.values = nil
	return list
}

// KeepValues keeps a list of TakeValues, of which nothing is used any more.
func (m *Memory) KeepValues(list []any) {
	clear(list)
	if m.values = list[:0]; cap(list) > mostValues {
		m.values = nil
	}
}

func (m *Memory) takeRows() *Rows {
	if m == nil || m.rows == nil {
		return &Rows{call: call[driver.Rows]{operation: querying}}
	}
	r := m.rows
	m.rows = nil
	return r
}

// keepRows is called after the rows were closed.
func (m *Memory) keepRows(r *Rows) {
	r.inner = Conn{} // another Close does nothing
	if m != nil {
		r.Rows, r.Failing = nil, nil
		r.call.reset()
		m.rows = r
	}
}

func (m *Memory) takeCall() *call[driver.Result] {
	if m == nil || m.call == nil {
		return &call[driver.Result]{operation: executing}
	}
	c := m.call
	m.call = nil
	return c
}

func (m *Memory) keepCall(c *call[driver.Result]) {
	if m != nil {
		c.reset()
		m.call = c
	}
}
