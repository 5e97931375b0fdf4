// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"fmt"
	"sync/atomic"
)

// Memory bounds the bytes that all stages of one statement, and the rows of all its shards, hold together. It counts the bytes of
// values and of their containers. It does not count garbage that has not been collected yet. It is safe for concurrent use.
type Memory struct {
	limit int64
	used  atomic.Int64
}

// NewMemory returns a Memory of limit bytes.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// MemoryError means that a result needs more memory than the limit.
type MemoryError struct {
	Limit int64 // bytes
}

// Error names the limit and what to do.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("merge: the rows of several shards need more than the %d bytes allowed; narrow the statement", e.Limit)
}

// Take counts a row as held.
func (m *Memory) Take(row []driver.Value) error { return m.take(sizeOf(row...)) }

// Give counts a row as no longer held.
func (m *Memory) Give(row []driver.Value) { m.give(sizeOf(row...)) }

// take counts n more bytes as held.
func (m *Memory) take(n int) error {
	if m.used.Add(int64(n)) > m.limit {
		return &MemoryError{Limit: m.limit}
	}
	return nil
}

func (m *Memory) give(n int) { m.used.Add(-int64(n)) }

// Sizes in bytes, without the bytes of values.
const (
	sizeOfEntry = 64  // of a map, with the header of its key
	sizeOfValue = 32  // an interface and the number that it refers to
	sizeOfGroup = 160 // a group, and the pointers to it
	sizeOfState = 208 // an aggregate's state, with the words of a large sum
)

// sizeOf returns the approximate size of a row.
func sizeOf(row ...driver.Value) int {
	n := sizeOfValue * len(row)
	for _, v := range row {
		switch v := v.(type) {
		case []byte:
			n += len(v)
		case string:
			n += len(v)
		}
	}
	return n
}
