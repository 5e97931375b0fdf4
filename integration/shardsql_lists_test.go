// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lib/pq"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding"
)

// markedUsers are neighbors that are equal as floats, and small numbers.
var markedUsers = []int64{1, 2, 3, 5, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<53 + 2, 1<<60 + 1, 1<<60 + 2, 1<<60 + 3}

// markTwins are the marks of users.
func markTwins(t *testing.T, open namedDatabase) (routed, whole *sql.DB) {
	t.Helper()
	routed, whole = spreadTwins(t, open, "marks", "user_id", "id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(20), n INT NOT NULL")
	for i := range 40 {
		for _, db := range []*sql.DB{routed, whole} {
			database.Exec(t, db, fmt.Sprintf("INSERT INTO marks (id, user_id, note, n) VALUES (%d, %d, 'new', %d)", i, markedUsers[i%len(markedUsers)], i%4))
		}
	}
	return routed, whole
}

// listWriter writes statements with a list of users as a source of rows, v (k, note).
type listWriter struct {
	*rand.Rand

	postgres, rows bool // rows: VALUES ROW(…), of MySQL
	args           []any
}

// users returns some users, whose numbers may be texts where the database converts them.
func (w *listWriter) users() (all []any) {
	for range 1 + w.IntN(3) {
		var user any = markedUsers[w.IntN(len(markedUsers))]
		if !w.postgres && w.IntN(4) == 0 {
			user = fmt.Sprint(user)
		}
		if !slices.Contains(all, user) {
			all = append(all, user)
		}
	}
	if w.IntN(8) == 0 {
		all = append(all, nil)
	}
	return all
}

// value writes a value as a parameter or a literal.
func (w *listWriter) value(v any) string {
	switch v := v.(type) {
	case nil:
		if w.IntN(2) == 0 {
			return "NULL"
		}
	case string:
		if w.IntN(2) == 0 {
			return "'" + v + "'"
		}
	case int64:
		if w.IntN(2) == 0 {
			return strconv.FormatInt(v, 10)
		}
	}
	w.args = append(w.args, v)
	if !w.postgres {
		return "?"
	}
	number := fmt.Sprintf("$%d", len(w.args))
	if _, isText := v.(string); isText {
		return number + "::text"
	}
	return number + "::bigint"
}

// list writes v (k, note).
func (w *listWriter) list() string {
	users, note := w.users(), fmt.Sprintf("n%d", w.IntN(100))
	if form := w.IntN(3); w.postgres && form > 0 {
		ids, notes := make([]sql.NullInt64, len(users)), make([]string, len(users))
		for i, u := range users {
			ids[i].Int64, ids[i].Valid = u.(int64)
			notes[i] = note
		}
		w.args = append(w.args, pq.Array(ids), pq.Array(notes))
		n := len(w.args)
		if form == 1 {
			return fmt.Sprintf("unnest($%d::bigint[], $%d::text[]) AS v (k, note)", n-1, n)
		}
		return fmt.Sprintf("(SELECT unnest($%d::bigint[]) AS k, unnest($%d::text[]) AS note) AS v", n-1, n)
	}
	parts := make([]string, len(users))
	for i, u := range users {
		k, n := w.value(u), w.value(note)
		switch {
		case w.postgres:
			parts[i] = "(" + k + ", " + n + ")"
		case w.rows:
			parts[i] = "ROW(" + k + ", " + n + ")"
		default:
			parts[i] = "SELECT " + k + " AS k, " + n + " AS note"
		}
	}
	switch {
	case w.postgres, w.rows:
		return "(VALUES " + strings.Join(parts, ", ") + ") AS v (k, note)"
	}
	return "(" + strings.Join(parts, " UNION ALL ") + ") AS v"
}

func (w *listWriter) statement() string {
	w.args = nil
	switch w.IntN(9) {
	case 0, 1, 2:
		if w.postgres {
			return "UPDATE marks AS m SET note = v.note, n = m.n + 1 FROM " + w.list() + " WHERE m.user_id = v.k"
		}
		return "UPDATE marks AS m JOIN " + w.list() + " ON m.user_id = v.k SET m.note = v.note, m.n = m.n + 1"
	case 3:
		if w.postgres {
			return "WITH v AS (SELECT * FROM " + w.list() + ") SELECT m.id FROM marks AS m JOIN v ON v.k = m.user_id"
		}
		return "SELECT COUNT(*), SUM(m.n) FROM " + w.list() + " JOIN marks AS m ON m.user_id = v.k"
	case 4:
		return "SELECT m.id, m.note, v.note FROM marks AS m LEFT JOIN " + w.list() + " ON v.k = m.user_id"
	case 5:
		return "SELECT v.k, v.note, m.id FROM " + w.list() + " LEFT JOIN marks AS m ON v.k = m.user_id"
	case 6:
		return "SELECT COUNT(*), SUM(n) FROM marks WHERE user_id IN (SELECT k FROM " + w.list() + ")"
	case 7:
		return "SELECT id, n FROM marks AS m WHERE EXISTS (SELECT 1 FROM " + w.list() + " WHERE v.k = m.user_id) OR n = 3"
	}
	return "SELECT m.n, COUNT(*) FROM marks AS m JOIN " + w.list() + " ON m.user_id = v.k OR m.n = 2 GROUP BY m.n"
}

// Lists of values lead to the shards of the rows that equal them.
func TestRandomStatementsWithListsOfValuesLeaveWhatOneTableHas(t *testing.T) {
	my := server.ShareMySQL(t)
	for name, open := range map[string]struct {
		namedDatabase

		postgres, rows bool
	}{
		"MariaDB":             {server.ShareMariaDB(t).Open, false, false},
		"MySQL":               {my.Open, false, false},
		"MySQL, rows":         {my.Open, false, true},
		"MySQL, written":      {writingArguments(my.Open, my.DSN), false, true},
		"PostgreSQL with pgx": {postgresDrivers(t)["pgx"], true, false},
		"PostgreSQL with pq":  {postgresDrivers(t)["pq"], true, false},
	} {
		t.Run(name, func(t *testing.T) {
			routed, whole := markTwins(t, open.of(strings.NewReplacer(",", "", " ", "_").Replace(strings.ToLower(name))))
			w := &listWriter{Rand: rand.New(rand.NewPCG(5, 8)), postgres: open.postgres, rows: open.rows}
			executed, tried := 0, effort.Cases(300, 10000)
			for range tried {
				text := w.statement()
				if marked(t, routed, whole, text, w.args) {
					executed++
				}
			}
			t.Logf("%d of %d", executed, tried)
			if executed*2 < tried {
				t.Errorf("only %d of %d are executed", executed, tried)
			}
		})
	}
}

// marked executes a statement on both, and reports whether it is not refused.
func marked(t *testing.T, routed, whole *sql.DB, text string, args []any) bool {
	t.Helper()
	var answers []string
	for _, db := range []*sql.DB{routed, whole} {
		var answer []string
		var err error
		if strings.HasPrefix(text, "UPDATE") {
			answer, err = answered(t.Context(), db, text, args)
		} else {
			answer, err = rowsReturned(t.Context(), db, text, args)
		}
		if refused := (*sharding.RouteError)(nil); errors.As(err, &refused) {
			return false
		}
		if err != nil {
			t.Fatalf("%s %v: %v", text, args, err)
		}
		answers = append(answers, strings.Join(answer, "\n"), strings.Join(rowTexts(t, db, "SELECT * FROM marks"), "\n"))
	}
	if answers[0] != answers[2] || answers[1] != answers[3] {
		t.Fatalf("%s %v:\n%s\nand in one table\n%s", text, args, answers[0], answers[2])
	}
	return true
}
