// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/testkit/corpus"
)

const small = `-- A shop: prose may have colons.
--
-- It is not read.

CREATE TABLE orders (
  id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(10)
);
-- sharded: orders by user_id in group shop, also id; user_id refers to users

CREATE TABLE countries (id BIGINT NOT NULL PRIMARY KEY);
-- broadcast: countries

CREATE TABLE jobs (id BIGINT NOT NULL PRIMARY KEY);
-- home: jobs

-- name: some orders
-- from: a project, its list
-- args: 5, -2, 1.5, 'it''s, so', NULL
-- dialect: mysql
-- with: one
-- without: refused
-- because: say more
SELECT * FROM orders
WHERE user_id = ? AND id IN (?, ?, ?, ?);

-- name: all countries
-- from: the same
-- with: broadcast
-- without: broadcast
SELECT '?' FROM countries;
`

func TestTablesSayWhereTheirRowsLie(t *testing.T) {
	f, err := corpus.Read("shop", small)
	if err != nil {
		t.Fatal(err)
	}
	want := corpus.Table{
		Name: "orders", Placement: corpus.Sharded, Key: "user_id", Group: "shop", Also: []string{"id"}, Parents: map[string]string{"user_id": "users"},
		Create: "CREATE TABLE orders (\n  id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(10)\n)",
	}
	if len(f.Tables) != 3 || !reflect.DeepEqual(f.Tables[0], want) || f.Tables[1].Placement != corpus.Broadcast || f.Tables[2].Placement != corpus.Home {
		t.Errorf("read %+v, want orders as %+v, countries as broadcast and jobs at home", f.Tables, want)
	}
}

func TestStatementsSayWhatIsExpectedOfThem(t *testing.T) {
	f, err := corpus.Read("shop", small)
	if err != nil {
		t.Fatal(err)
	}
	want := corpus.Statement{
		Name: "some orders", From: "a project, its list", Line: 16, Dialect: corpus.MySQL, With: corpus.One, Without: corpus.Refused, Because: "say more",
		Text: "SELECT * FROM orders\nWHERE user_id = ? AND id IN (?, ?, ?, ?)", Args: []any{int64(5), int64(-2), 1.5, "it's, so", nil},
	}
	if len(f.Statements) != 2 || !reflect.DeepEqual(f.Statements[0], want) {
		t.Errorf("read %+v, want first %+v", f.Statements, want)
	}
	if s := f.Statements[1]; s.Dialect != corpus.Any || !s.For(corpus.SQLite) || f.Statements[0].For(corpus.SQLite) {
		t.Errorf("SQLite takes %+v: %v, and the statement for MySQL: %v; want the first alone", s, s.For(corpus.SQLite), f.Statements[0].For(corpus.SQLite))
	}
}

func TestAFileThatIsWrongIsRefusedWithItsLine(t *testing.T) {
	for _, test := range []struct{ old, changed, want string }{
		{"user_id refers", "number refers", `shop.sql:5: table "orders" has no column number BIGINT`},
		{"also id", "also number", `shop.sql:5: table "orders" has no column number BIGINT`},
		{"orders by", "order by", `shop.sql:5: the placement of table "orders" is one of "order"`},
		{"-- home: jobs", "-- everywhere: jobs", `shop.sql:13: table "jobs" is "everywhere"`},
		{"-- home: jobs\n", "", `shop.sql:13: table "jobs" has 0 comments`},
		{"TABLE jobs", "TABLE orders", `shop.sql:13: the placement of table "orders" is one of "jobs"`},
		{"-- name: all countries", "-- name: some orders", `the name "some orders" occurs twice`},
		{"-- from: the same\n", "", `statement "all countries" lacks "from"`},
		{"-- from: the same", "-- form: the same", `shop.sql:26: "form" is no field`},
		{"-- from: the same", "-- name: the same", `shop.sql:26: "name" is no field, or occurs twice`},
		{"-- from: the same", "-- from:", `shop.sql:26: "from" is empty`},
		{"-- with: one", "-- with: whole", `shop.sql:16: with: "whole" is none of [one scatter home broadcast refused]`},
		{"dialect: mysql", "dialect: any", `dialect: "any" is none of [mysql sqlite]`},
		{"-- args: 5, ", "-- args: ", `shop.sql:16: statement "some orders" has 5 parameters for mysql and 4 args`},
		{"-- args: 5", "-- args: five", `args: "five" is no number, text or NULL`},
		{"-- because: say more\n", "", `because belongs to what is refused`},
		{"-- with: one", "-- with: refused\n\n", `shop.sql:16: statement "some orders" lacks "without"`},
		{"-- with: one\n-- without: refused", "-- with: refused\n-- without: one", `is refused only where ids carry the slot`},
		{"-- with: one", "-- with: home", `statement "some orders" names a sharded table and is home with`},
		{"-- without: broadcast", "-- without: one", `names no sharded table and is broadcast with, one without, want broadcast`},
		{"'?' FROM countries", "1", `statement "all countries" names none of the tables`},
		{"FROM countries;", "FROM countries", `statement "all countries" does not end with a semicolon`},
	} {
		if !strings.Contains(small, test.old) {
			t.Fatalf("the file does not contain %q", test.old)
		}
		_, err := corpus.Read("shop", strings.Replace(small, test.old, test.changed, 1))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q instead of %q: the error is %v, want %q", test.changed, test.old, err, test.want)
		}
	}
}

func TestADirectoryWithoutFilesIsRefused(t *testing.T) {
	if files, err := corpus.ReadDir(t.TempDir()); err == nil {
		t.Errorf("an empty directory gives %v and no error", files)
	}
}
