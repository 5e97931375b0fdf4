// SPDX-License-Identifier: Apache-2.0

package shapes

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/testkit/corpus"
)

// Dialect is the dialect of the statements.
type Dialect uint8

// The dialects.
const (
	SQLite Dialect = iota
	MySQL
	MariaDB
	PostgreSQL
)

// Numbered returns a text with the parameters in the dialect's form.
func (d Dialect) Numbered(text string) string {
	if d == PostgreSQL {
		return corpus.Numbered(text)
	}
	return text
}

// conflicts reports whether the dialect has ON CONFLICT, RETURNING and UPDATE … FROM.
func (d Dialect) conflicts() bool { return d == SQLite || d == PostgreSQL }

// alike returns the operator of an equality that also holds between NULLs.
func (d Dialect) alike() string {
	switch d {
	case SQLite:
		return " IS "
	case PostgreSQL:
		return " IS NOT DISTINCT FROM "
	}
	return " <=> "
}

// text returns the type of texts of any length for CAST.
func (d Dialect) text() string {
	if d == PostgreSQL {
		return "TEXT"
	}
	return "CHAR"
}

// truths returns the values that a condition may equal.
func (d Dialect) truths() []string {
	if d == PostgreSQL {
		return []string{"FALSE", "TRUE"}
	}
	return []string{"0", "1"}
}

// joins returns the inner joins, and the joins that only some dialects have.
func (d Dialect) joins() []string {
	if d == PostgreSQL || d == SQLite {
		return []string{" INNER JOIN ", " FULL JOIN "}
	}
	return []string{" INNER JOIN "}
}

// having returns the operands for HAVING, where PostgreSQL accepts no alias.
func (d Dialect) having(alias string, aggregates ...string) []string {
	if d == PostgreSQL {
		return aggregates
	}
	return append([]string{alias}, aggregates...)
}

// order returns a query of n columns in a total order, some with a limit.
func (d Dialect) order(m *dice, text string, n int) string {
	columns := m.Perm(n)
	by := make([]string, n)
	for i, column := range columns {
		by[i] = strconv.Itoa(column+1) + m.pick("", " DESC")
		if d == PostgreSQL {
			by[i] += m.pick("", "", " NULLS FIRST", " NULLS LAST")
		}
	}
	if rows, plain := strings.CutPrefix(text, "SELECT "); plain && d == PostgreSQL && m.chance(12) && !strings.HasPrefix(rows, "DISTINCT ") && !union(rows) {
		text = "SELECT DISTINCT ON (" + strconv.Itoa(columns[0]+1) + ") " + rows
	}
	text += " ORDER BY " + strings.Join(by, ", ")
	switch n := m.IntN(4); {
	case n == 0, n == 1 && strings.Contains(text, "EXISTS"): // SQLite 3.53.0 ignores an OFFSET beside it
		text += " LIMIT " + m.value(int64(m.IntN(9)))
	case n == 1:
		text += " LIMIT " + m.value(int64(1+m.IntN(9))) + " OFFSET " + m.value(int64(m.IntN(5)))
	}
	return text
}

func union(text string) bool {
	for _, word := range []string{" UNION ", " INTERSECT ", " EXCEPT "} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// listed returns the aggregate that lists the numbers of a column in a text.
func (d Dialect) listed(column string) string {
	if d == PostgreSQL {
		return "STRING_AGG(" + column + "::text, ',')"
	}
	return "GROUP_CONCAT(" + column + ")"
}
