// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"fmt"
)

// Memory bounds what the stages of one statement hold together. It counts the bytes
// of values and of what they are kept in; what the garbage collector has not yet
// taken back is not counted.
type Memory struct{ limit, used int64 }

// NewMemory returns a Memory of limit bytes.
func NewMemory(limit int64) *Memory { return &Memory{limit: limit} }

// MemoryError tells that an answer cannot be put together within the bound.
type MemoryError struct {
	Limit int64 // bytes
}

// Error names the bound and what to do.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("merge: the rows of several shards need more than the %d bytes allowed; narrow the statement, or raise the limit", e.Limit)
}

// take counts n bytes as held.
func (m *Memory) take(n int) error {
	if m.used += int64(n); m.used > m.limit {
		return &MemoryError{Limit: m.limit}
	}
	return nil
}

func (m *Memory) give(n int) { m.used -= int64(n) }

// What things take beside their bytes, in bytes.
const (
	sizeOfEntry = 64  // of a map, with the header of its key
	sizeOfValue = 32  // an interface and the number that it refers to
	sizeOfGroup = 160 // a group, and the pointers to it
	sizeOfState = 208 // an aggregate's state, with the words of a large sum
)

// sizeOf returns about how many bytes a row takes.
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
