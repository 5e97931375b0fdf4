// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"strings"
)

// Rows are inserted by prepared statements, whose values cost a server less than literals,
// which it must parse. Each statement has a fixed number of rows; a connection keeps the
// statements that it has used.
const (
	preparedRows   = 256 // and its halves; more rows gain little
	preparedValues = 2048
	preparedBytes  = 240_000 // of the values and the driver's overhead for them
)

// Batch is the largest number of rows for which there is a statement, and that rows provide
// and the size limit allows.
func (mysqlWriting) Batch(rows []Row) int {
	if len(rows) == 0 {
		return 0
	}
	rows = rows[:min(len(rows), preparedRows)]
	most := min(fitting(rows, preparedBytes), preparedValues/len(rows[0].Ends))
	n := preparedRows
	for n > 1 && n > most {
		n /= 2
	}
	return n
}

// Insert sends all values as text; the columns convert them as they convert literals.
func (m mysqlWriting) Insert(ctx context.Context, s *Session, columns []Column, name string, rows []Row) error {
	row := m.placeholders(columns)
	stmt, err := s.prepare(ctx, insertHead(m, columns, name)+row+strings.Repeat(","+row, len(rows)-1)) //nolint:sqlclosecheck // it stays with the connection
	if err != nil {
		return err
	}
	defer func() { clear(s.values) }()
	s.values = s.values[:0]
	for i := range rows {
		s.values = rows[i].appendTo(s.values)
	}
	_, err = stmt.ExecContext(ctx, s.values...)
	return tooLong(err)
}

// placeholders are those of one row. The bytes of a BIT and of a VECTOR are no text: MySQL refuses them as
// texts with the errors 3988 (no conversion to latin1) and 6136 when it prepares a statement again, as it
// does when it has closed the table meanwhile.
func (m mysqlWriting) placeholders(columns []Column) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = "?"
		if c.Type == "bit" || c.Type == "vector" {
			all[i] = "CAST(? AS BINARY)"
		}
	}
	return "(" + strings.Join(all, ",") + ")"
}

// Deletion joins the table to the list of keys, in this order. With the list in an IN, the
// server may scan the whole table when its estimate is that most rows are in the list, or
// that the table is small.
func (m mysqlWriting) Deletion(table, key string, keys []int64, condition string) string {
	name := m.Quote(table)
	text := fmt.Sprintf("DELETE %s FROM JSON_TABLE('[%s]', '$[*]' COLUMNS (shardid_key BIGINT PATH '$')) AS shardid_gone"+
		" STRAIGHT_JOIN %[1]s FORCE INDEX (PRIMARY) ON %[3]s = shardid_gone.shardid_key", name, IDList(keys), ColumnOf(m, table, key))
	if condition != "" {
		text += " WHERE " + condition
	}
	return text
}

// tooLong adds advice to the error for a row that does not fit into a statement.
func tooLong(err error) error {
	if IsMySQL(err, "1153") || err != nil && strings.Contains(err.Error(), "packet for query is too large") {
		return fmt.Errorf("%w; a row is longer than a statement may be: raise max_allowed_packet there, or have the driver send long values one by one, as it does with maxAllowedPacket=0 in its DSN", err)
	}
	return err
}

// appendTo appends the row's values to those of other rows.
func (r *Row) appendTo(values []any) []any {
	for i := range r.Ends {
		if text, ok := r.Value(i); ok {
			values = append(values, text)
		} else {
			values = append(values, nil)
		}
	}
	return values
}

// GrowBuffers makes the driver allocate a large buffer. For values it would grow its buffer
// step by step, and discard several times their size with each statement. With a large
// buffer it also reads rows with fewer system calls. The driver allocates the buffer of an
// answer at once and keeps it. It has two buffers, and switches to the other one after an
// answer that was not read to its end, as here.
func (mysqlWriting) GrowBuffers(ctx context.Context, s *Session) error {
	for ; s.largeBuffers < 2; s.largeBuffers++ {
		var answer string
		if err := s.QueryRowContext(ctx, "SELECT REPEAT(' ', 250000)").Scan(&answer); err != nil {
			return err
		}
	}
	return nil
}
