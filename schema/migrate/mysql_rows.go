package migrate

import (
	"context"
	"database/sql"
	"strings"
)

// Rows are inserted by prepared statements: a server has less to do for their
// values than for literals, which it must read. Each statement has a fixed number of
// rows; a connection keeps those that it has used.
const (
	preparedRows       = 256 // and its halves: more rows gain little
	preparedValues     = 2048
	preparedBytes      = 240_000 // with what comes beside the values, what the driver keeps for them
	preparedStatements = 128     // of one connection: it has the server keep what is in them
	manyRows           = 32      // for which a large buffer pays
)

// batch is the largest number of rows, among those that statements have, which
// there are and fit.
func (mysqlSeam) batch(rows []record) int {
	rows = rows[:min(len(rows), preparedRows)]
	most := min(fitting(rows, preparedBytes), preparedValues/len(rows[0].ends))
	n := preparedRows
	for n > 1 && n > most {
		n /= 2
	}
	return n
}

// insert has all values come as texts, of which the columns make what they hold
// as they do of literals.
func (mysqlSeam) insert(ctx context.Context, s *session, t *table, name string, rows []record) error {
	if len(rows) >= manyRows && !s.roomy {
		if err := s.makeRoom(ctx); err != nil {
			return err
		}
		s.roomy = true
	}
	row := "(?" + strings.Repeat(",?", len(t.columns)-1) + ")"
	stmt, err := s.prepare(ctx, s.insertHead(t, name)+row+strings.Repeat(","+row, len(rows)-1)) //nolint:sqlclosecheck // it stays with the connection
	if err != nil {
		return err
	}
	values := make([]any, 0, len(rows)*len(t.columns))
	for _, r := range rows {
		for i := range r.ends {
			if text, ok := r.value(i); ok {
				values = append(values, text)
			} else {
				values = append(values, nil)
			}
		}
	}
	_, err = stmt.ExecContext(ctx, values...)
	return err
}

// prepare returns a statement that the connection keeps until it ends.
func (c *session) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := c.prepared[query]; stmt != nil {
		return stmt, nil
	}
	if len(c.prepared) == preparedStatements {
		c.forget()
	}
	stmt, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if c.prepared == nil {
		c.prepared = map[string]*sql.Stmt{}
	}
	c.prepared[query] = stmt
	return stmt, nil
}

// makeRoom has the driver get a large buffer, which it would not for values: it
// adds them one by one to the one that it has, and throws away several times
// their size on the way, each time. An answer's buffer is made at once, and kept;
// it has two of them.
func (c *session) makeRoom(ctx context.Context) error {
	for range 2 {
		if _, err := c.list(ctx, "SELECT REPEAT(' ', 250000)"); err != nil {
			return err
		}
	}
	return nil
}

// forget ends the statements.
func (c *session) forget() {
	for _, stmt := range c.prepared {
		_ = stmt.Close()
	}
	clear(c.prepared)
}
