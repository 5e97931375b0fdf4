// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Row is a row that is being copied. It has as few pointers as possible: many rows are in
// memory at once, and the garbage collector would cost as much as reading them.
type Row struct {
	ID    int64    // where it was read
	Key   int64    // where it is to be written
	Route any      // the sharding key, as it was read
	To    int      // index of its target, or nowhere
	Text  string   // its values as the database wrote them down, in the order of the columns
	Ends  []int    // of the values in the text; of NULL, the complement
	Slots []IDSlot // values that are replaced by ids of the other side

	Weight int // in memory, bytes
}

// Value returns the text of a value; false for NULL.
func (r *Row) Value(i int) (text string, ok bool) {
	from, to := 0, r.Ends[i]
	if to < 0 {
		return "", false
	}
	if i > 0 {
		from = max(r.Ends[i-1], ^r.Ends[i-1])
	}
	return r.Text[from:to], true
}

// IDSlot is a value of a row that is an id, which is another one on the other side.
type IDSlot struct {
	At int // which of the values
	ID int64
}

// fitting is how many of the first rows have at most this many bytes together, at least
// one.
func fitting(rows []Row, bytes int) int {
	size := 0
	for i, r := range rows {
		if size += len(r.Text); i > 0 && size > bytes {
			return i
		}
	}
	return len(rows)
}

// insertText is an INSERT of values that are literals.
func insertText(head string, rows []Row) string {
	var b strings.Builder
	size := len(head)
	for _, r := range rows {
		size += len(r.Text) + len(r.Ends) + 2
	}
	b.Grow(size)
	b.WriteString(head)
	for i, r := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		for j := range r.Ends {
			b.WriteByte("(,"[min(j, 1)])
			literal, _ := r.Value(j) // NULL is one, too
			b.WriteString(literal)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// IDList writes "1,2,3".
func IDList(ids []int64) string {
	var dst []byte
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, id, 10)
	}
	return string(dst)
}

// insertHead is an INSERT up to the values.
func insertHead(d dialect.Dialect, columns []Column, name string) string {
	names := make([]string, len(columns))
	for i, col := range columns {
		names[i] = d.Quote(col.Name)
	}
	return "INSERT INTO " + d.Quote(name) + " (" + strings.Join(names, ", ") + ") VALUES "
}
