// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/route"
)

func TestRouteSaysWhereAStatementGoes(t *testing.T) {
	config := newConfig(t, shardsJSON)
	for want, args := range map[string][]string{
		"one shard\n  west/orders_03: SELECT * FROM `orders_03` AS orders WHERE user_id = ? with [7]\n": {"SELECT * FROM orders WHERE user_id = ?", "7"},
		"one shard\n  west/orders_03: SELECT * FROM \"orders_03\" AS orders WHERE user_id = 7\n":        {"--dialect", "sqlite", "SELECT * FROM orders WHERE user_id = 7"},
		"home: unchanged, to the home database\n":                                                       {"SELECT * FROM users WHERE id = 7"},
	} {
		o := succeed(t, append([]string{"route", "--config", config}, args...)...)
		if o.stdout != want {
			t.Errorf("%v:\n%s\nwant\n%s", args, o.stdout, want)
		}
	}
	var got route.Result
	o := succeed(t, "route", "--config", config, "--json", "SELECT COUNT(*) FROM orders LIMIT 3")
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil || got.Kind != "scatter" || len(got.Shards) != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	o = succeed(t, "route", "--config", config, "--dialect", "sqlite", "INSERT INTO orders (id, user_id) VALUES (5, 7) ON CONFLICT (id) DO NOTHING")
	const first = "one shard\n  is the row in west/orders_03: SELECT 3, \"id\", \"user_id\" FROM \"orders_03\" WHERE \"id\" IN (?) with [5]\n  is the row in "
	if lines := strings.Count(o.stdout, "\n"); !strings.HasPrefix(o.stdout, first) || lines != 5 {
		t.Errorf("%d lines: %s", lines, o.stdout)
	}
}

func TestRouteSaysThatASubqueryIsExecutedFirst(t *testing.T) {
	const want = "\n  (0 + 0) stands for the result of a subquery, which is executed first; the result may lead to fewer shards\n"
	o := succeed(t, "route", "--config", newConfig(t, shardsJSON), "SELECT COUNT(*) FROM orders WHERE user_id IN (SELECT id FROM users)")
	if !strings.Contains(o.stdout, " WHERE user_id IN (0 + 0)\n") || strings.Count(o.stdout, want) != 1 {
		t.Error(o.stdout)
	}
}

func TestRouteNeedsAnArgumentForEachParameter(t *testing.T) {
	config := newConfig(t, shardsJSON)
	for want, args := range map[string][]string{
		"the number of parameters of the statement in the dialect mysql (--dialect) is 1, and that of the arguments after it 0":    {"SELECT * FROM orders WHERE user_id = ?"},
		"the number of parameters of the statement in the dialect postgres (--dialect) is 2, and that of the arguments after it 1": {"--dialect", "postgres", "SELECT * FROM orders WHERE user_id = $1 AND id > $2 AND id < $2", "7"},
		"the number of parameters of the statement in the dialect mysql (--dialect) is 0, and that of the arguments after it 1":    {"SELECT * FROM orders WHERE user_id = 7", "7"},
		"in the dialect mysql (--dialect) is 0": {"SELECT * FROM orders WHERE user_id = $1", "7"},
	} {
		if o := execute(t, append([]string{"route", "--config", config}, args...)...); o.code != command.ExitInput || !strings.Contains(o.stderr, want) {
			t.Errorf("%v: %d, %s", args, o.code, o.stderr)
		}
	}
}

func TestRouteEndsWithCode1IfAStatementIsRefused(t *testing.T) {
	config := newConfig(t, shardsJSON)
	const want = "refused\n  sharding: update orders refused: sharding key would change; the row would belong to another shard; insert a new row and delete the old one, or leave user_id out\n"
	o := execute(t, "route", "--config", config, "UPDATE orders SET user_id = 8 WHERE user_id = 7")
	if o.code != command.ExitUnclean || o.stdout != want || o.stderr != "shardid: the statement is refused\n" {
		t.Errorf("%d, %q, %q", o.code, o.stdout, o.stderr)
	}
}

func TestRouteDoesNotCallRefusedWhatTheTypesOfColumnsDecide(t *testing.T) {
	config := newConfig(t, shardsJSON)
	const verdict = "undecided: needs the types and the unique keys of the columns, which the router reads from the databases"
	const remedy = "; name a database that has the columns with --source\n"
	for _, statement := range []string{"SELECT * FROM orders ORDER BY id LIMIT 3", "SELECT DISTINCT note FROM orders", "SELECT MAX(note) FROM orders", "SELECT note, COUNT(*) FROM orders GROUP BY note",
		"INSERT INTO regions (id, name) VALUES (1, 'x')", "UPDATE regions SET name = 'x' WHERE id = 1"} {
		o := execute(t, "route", "--config", config, statement)
		if o.code != command.ExitUnclean || o.stdout != verdict+"\n" || o.stderr != "shardid: the statement is undecided"+remedy {
			t.Errorf("%s: %d, %s%s", statement, o.code, o.stdout, o.stderr)
		}
	}
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("SELECT * FROM orders ORDER BY id LIMIT 3\nSELECT 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "route", "--config", config, "--log", log)
	if o.code != command.ExitUnclean || !strings.Contains(o.stdout, "      1   50.0 %  "+verdict+"\n\n      1  undecided; if the columns do not allow it: ") ||
		!strings.HasSuffix(o.stdout, "\n         SELECT * FROM orders ORDER BY id LIMIT ?\n") || o.stderr != "shardid: 1 of 2 statements are undecided"+remedy {
		t.Errorf("%d, %s%s", o.code, o.stdout, o.stderr)
	}
	// No type of a column makes the order of such a list known.
	if o := execute(t, "route", "--config", config, "SELECT GROUP_CONCAT(note) FROM orders"); o.code != command.ExitUnclean || !strings.HasPrefix(o.stdout, "refused\n") {
		t.Errorf("%d, %s", o.code, o.stdout)
	}
}

func TestRouteDecidesByTheColumnsOfASourceOrOfAShard(t *testing.T) {
	const columns = " (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, status TEXT NOT NULL, total INTEGER NOT NULL)"
	config := newConfig(t, shardsJSON)
	dir := filepath.Dir(config)
	for name, text := range map[string]string{"shop.db": "CREATE TABLE orders" + columns, "west.db": "CREATE TABLE orders_01" + columns, "east.db": "CREATE TABLE others (id INTEGER)"} {
		db := openFile(t, filepath.Join(dir, name))
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	statements := []string{"SELECT user_id, SUM(total) FROM orders GROUP BY user_id", "SELECT COUNT(DISTINCT status) FROM orders"}
	for _, source := range []string{filepath.Join(dir, "shop.db"), "west"} {
		for _, statement := range statements {
			if o := succeed(t, "route", "--config", config, "--source", source, statement); !strings.HasPrefix(o.stdout, "several shards\n  ") {
				t.Errorf("%s: %s: %s", source, statement, o.stdout)
			}
		}
		if o := succeed(t, "route", "--config", config, "--source", source, "UPDATE orders SET status = 'x' WHERE id = 5"); !strings.HasPrefix(o.stdout, "after a search, which tells the shards\n  ") || strings.Contains(o.stdout, "lookup") {
			t.Errorf("%s: there is no lookup table: %s", source, o.stdout)
		}
		o := execute(t, "route", "--config", config, "--source", source, "UPDATE orders SET status = 'x' WHERE status = 'y'")
		if o.code != command.ExitUnclean || !strings.HasPrefix(o.stdout, "refused\n") {
			t.Errorf("%s: %d, %s%s", source, o.code, o.stdout, o.stderr)
		}
	}
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(log, []byte(strings.Join(statements, "\n")+"\nSELECT * FROM ordrs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := succeed(t, "route", "--config", config, "--source", "west", "--log", log); !strings.Contains(o.stdout, "      2   66.7 %  several shards\n") || !strings.HasSuffix(o.stdout, "\nnot found in the database of the columns: ordrs\n") {
		t.Errorf("%s%s", o.stdout, o.stderr)
	}
	o := execute(t, "route", "--config", config, "--source", "east", statements[1])
	if o.code != command.ExitUnclean || !strings.HasSuffix(o.stdout, "\n  not found in the database of the columns: orders\n") || o.stderr != "shardid: the statement is undecided; name another database with --source, which has its tables\n" {
		t.Errorf("%d, %s%s", o.code, o.stdout, o.stderr)
	}
	for says, args := range map[string][]string{
		"the dialect is that of --source": {"--dialect", "mysql", "--source", "west"},
		"--source: there is no file":      {"--source", filepath.Join(dir, "nowhere")},
	} {
		o := execute(t, append(append([]string{"route", "--config", config}, args...), "SELECT 1")...)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, says) {
			t.Errorf("%v: %d, %s", args, o.code, o.stderr)
		}
	}
}

func TestRouteSaysThatItDoesNotKnowAStatement(t *testing.T) {
	config := newConfig(t, shardsJSON)
	const home = "home: unchanged, to the home database\n"
	for statement, want := range map[string]string{
		"SELEC 1":                             home + "  SELEC begins no statement that shardid knows; the home database decides what it is\n",
		"/* of a page */ SELECT * FROM order": home + "  shardid cannot read this SELECT, and leaves it to the home database; is its syntax right?\n",
		"SET NAMES utf8mb4":                   home,
		"(SELECT 1)":                          home,
		"CREATE TABLE x (id BIGINT)":          home,
	} {
		if o := succeed(t, "route", "--config", config, statement); o.stdout != want {
			t.Errorf("%s: %s", statement, o.stdout)
		}
	}
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("SELEC 1\nSELECT 1\nSELEC 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := succeed(t, "route", "--config", config, "--log", log); !strings.HasSuffix(o.stdout, "\n      2  SELEC begins no statement that shardid knows; the home database decides what it is\n         SELEC ?\n") {
		t.Error(o.stdout)
	}
}

func TestRouteNamesTheLookupTableThatIsAsked(t *testing.T) {
	config := newConfig(t, strings.ReplaceAll(pageBlock(t, "json"), `, "building": true`, ""))
	const statement = "SELECT * FROM users WHERE email = 'a@x'"
	const want = "after a search, which tells the shards\n  east/users_by_email: SELECT id FROM users_by_email WHERE email IN (?) with [a@x]\n"
	if o := succeed(t, "route", "--config", config, statement); o.stdout != want {
		t.Errorf("%s\nwant\n%s", o.stdout, want)
	}
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte(statement+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if o := succeed(t, "route", "--config", config, "--log", log); !strings.Contains(o.stdout, "      1  100.0 %  after a search") {
		t.Error(o.stdout)
	}
}

func TestRouteCountsTheStatementsOfALog(t *testing.T) {
	config := newConfig(t, shardsJSON)
	for name, log := range map[string]string{
		"a statement per line": "-- a comment\nSELECT * FROM orders WHERE user_id = 7;\n\nSELECT 1\nUPDATE orders SET note = 'x' WHERE id > 3\nUPDATE orders SET note = 'y'\nSELECT COUNT(*) FROM orders\n",
		"MySQL's general log": "/usr/sbin/mysqld, Version: 9.7.4-2 ((Debian)). started with:\nTcp port: 3306  Unix socket: /run/s.sock\nTime                 Id Command    Argument\n" +
			"2026-11-22T18:00:00.123456Z\t    8 Connect\troot@localhost on shop using Socket\n" +
			"2026-11-22T18:00:00.123456Z\t    8 Query\tSELECT * FROM orders\nWHERE user_id = 7\n2026-11-22T18:00:00.223456Z\t    8 Query\tSELECT 1\n" +
			"2026-11-22T18:00:00.223456Z\t    8 Prepare\tUPDATE orders SET note = ? WHERE id > ?\n2026-11-22T18:00:00.323456Z\t    8 Execute\tUPDATE orders SET note = 'x' WHERE id > 3\n" +
			"2026-11-22T18:00:00.423456Z\t   18 Query\tUPDATE orders SET note = 'y'\n2026-11-22T18:00:01.423456Z\t   18 Query\tSELECT COUNT(*) FROM orders\n2026-11-22T18:00:02.423456Z\t   18 Quit\t\n",
		"MariaDB's general log": "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB (Debian 12). started with:\nTcp port: 3306  Unix socket: /run/s.sock\nTime\t\t    Id Command\tArgument\n" +
			"261122 18:00:00\t     8 Connect\troot@localhost on shop using Socket\n" +
			"\t\t     8 Query\tSELECT * FROM orders\nWHERE user_id = 7\n261122 18:00:01\t     8 Query\tSELECT 1\n\t\t     8 Prepare\tUPDATE orders SET note = ? WHERE id > ?\n" +
			"\t\t     8 Execute\tUPDATE orders SET note = 'x' WHERE id > 3\n\t\t    18 Query\tUPDATE orders SET note = 'y'\n\t\t    18 Query\tSELECT COUNT(*) FROM orders\n\t\t    18 Quit\t\n",
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		o := execute(t, "route", "--config", config, "--log", file)
		const want = "5 statements\n      1   20.0 %  one shard\n      1   20.0 %  several shards\n      1   20.0 %  home: unchanged, to the home database\n      2   40.0 %  refused\n\n      2  "
		if o.code != command.ExitUnclean || o.stderr != "shardid: 2 of 5 statements are refused\n" || !strings.HasPrefix(o.stdout, want) || !strings.Contains(o.stdout, "\n         UPDATE orders SET note = ? WHERE id > ?\n") {
			t.Errorf("%s:\n%s", name, o.stdout)
		}
		var report route.Report
		o = execute(t, "route", "--config", config, "--json", "--log", file)
		if err := json.Unmarshal([]byte(o.stdout), &report); err != nil || report.Statements != 5 || len(report.Refused) != 1 || report.Refused[0].Times != 2 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
	}
}

// A list of prepared statements, as from pg_stat_statements, does not have the values of their parameters. Where most of them go does not
// depend on the values.
func TestRouteDecidesStatementsOfALogWithoutTheirValuesIfAnyValuesLeadThere(t *testing.T) {
	config := newConfig(t, shardsJSON)
	file := filepath.Join(t.TempDir(), "log")
	log := "SELECT * FROM orders WHERE user_id = $1\nUPDATE orders SET note = $1 WHERE user_id = $2\nSELECT note FROM orders WHERE user_id = 7 AND id = $1\nSELECT name FROM others WHERE id = $1\n" +
		"SELECT COUNT(*) FROM orders WHERE note = $1\nUPDATE orders SET note = $1\nSELECT COUNT(*) FROM orders WHERE user_id IN ($1, $2)\n"
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "route", "--config", config, "--dialect", "postgres", "--log", file)
	const want = "7 statements\n" +
		"      3   42.9 %  one shard\n" +
		"      1   14.3 %  several shards\n" +
		"      1   14.3 %  home: unchanged, to the home database\n" +
		"      1   14.3 %  undecided\n" +
		"      1   14.3 %  refused\n" +
		"\n      1  "
	const unbound = "\n      1  undecided: needs the values of its parameters, which the log does not have\n         SELECT COUNT(*) FROM orders WHERE user_id IN (?, …)\n"
	if o.code != command.ExitUnclean || !strings.HasPrefix(o.stdout, want) || !strings.HasSuffix(o.stdout, unbound) || o.stderr != "shardid: 1 of 7 statements are refused, and 1 undecided; give a log with the values of parameters, such as MySQL's general log, or plan each statement with its arguments\n" {
		t.Errorf("%d, %s%s", o.code, o.stdout, o.stderr)
	}
	var report route.Report
	o = execute(t, "route", "--config", config, "--dialect", "postgres", "--json", "--log", file)
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil || report.Statements != 7 || len(report.Refused) != 1 || len(report.Undecided) != 0 || len(report.Unbound) != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

// PowerShell writes a file as UTF-16 by default, and other programs of Windows begin it with the bytes EF BB BF.
func TestRouteSaysWhyALogCannotBeRead(t *testing.T) {
	config := newConfig(t, shardsJSON)
	log := func(text string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for says, text := range map[string]string{
		"cannot be read: a line is longer than 16 MB; name a file":  "SELECT 1\n" + strings.Repeat("x", 17<<20),
		"cannot be read: it is UTF-16; write it as UTF-8":           "\xff\xfeS\x00E\x00L\x00E\x00C\x00T\x00 \x001\x00\n\x00",
		"cannot be read: it is UTF-16; write it as UTF-8; name a f": "\xfe\xff\x00S\x00E\x00L\x00E\x00C\x00T\x00 \x001\x00\n",
	} {
		if o := execute(t, "route", "--config", config, "--log", log(text)); o.code != command.ExitInput || !strings.Contains(o.stderr, says) || o.stdout != "" {
			t.Errorf("%d, %q, %q; want %q", o.code, o.stdout, o.stderr, says)
		}
	}
	if o := succeed(t, "route", "--config", config, "--log", log("\xef\xbb\xbfSELECT * FROM orders WHERE user_id = 7\n")); !strings.Contains(o.stdout, "      1  100.0 %  one shard\n") {
		t.Errorf("%s", o.stdout)
	}
}

func TestRouteRefusesWhatItCannotPlan(t *testing.T) {
	config := newConfig(t, shardsJSON)
	for says, args := range map[string][]string{
		"which statement?":                                 {"--config", config},
		"give one as an argument":                          {"--config", config, " "},
		"with --log, not both":                             {"--config", config, "--log", "x", "SELECT 1"},
		"is a directory; name a file with statements":      {"--config", config, "--log", t.TempDir()},
		"give --config FILE":                               {"SELECT 1"},
		"nowhere does not exist; name a file":              {"--config", config, "--log", "nowhere"},
		`--dialect "oracle" is unknown; give one of mysql`: {"--config", config, "--dialect", "oracle", "SELECT 1"},
	} {
		o := execute(t, append([]string{"route"}, args...)...)
		if o.code != command.ExitInput || !strings.Contains(o.stderr, says) || o.stdout != "" {
			t.Errorf("%v: %d, %q, %q; want %q", args, o.code, o.stdout, o.stderr, says)
		}
	}
}

func TestAListSendsEachValueToItsShard(t *testing.T) {
	layout := func(rule string) string {
		return newConfig(t, `{"databases": {"a": {"sqlite": "a.db"}, "b": {"sqlite": "b.db"}},
			"tables": [{"name": "orders", "key": "country", "rule": "`+rule+`", "targets": ["a/orders_0", "b/orders_1"]}]}`)
	}
	for rule, values := range map[string][2]string{"list(de = 0, fr = 1)": {"'de'", "'fr'"}, "list(7=0,9 = 1, 8 = 1)": {"7", "8"}} {
		for slot, value := range values {
			want := []string{"a/orders_0", "b/orders_1"}[slot]
			if o := succeed(t, "route", "--config", layout(rule), "SELECT * FROM orders WHERE country = "+value); !strings.Contains(o.stdout, want) {
				t.Errorf("%s, %s: %s", rule, value, o.stdout)
			}
		}
	}
	for rule, says := range map[string]string{
		"list(de)": `"de" has no slot; write it as list(de = 0, fr = 1)`, "list(a = x)": `"a = x" has no slot`, "list(a = 0, a = 1)": "the value a has two slots",
	} {
		if o := execute(t, "route", "--config", layout(rule), "SELECT 1"); o.code != command.ExitInput || !strings.Contains(o.stderr, says) {
			t.Errorf("%s: exit code %d: %s", rule, o.code, o.stderr)
		}
	}
}

// Midnight in Shanghai is 16:00 in UTC.
func TestAnIntervalSendsEachTimeToItsShard(t *testing.T) {
	layout := func(rule string) string {
		return newConfig(t, `{"databases": {"a": {"sqlite": "a.db"}, "b": {"sqlite": "b.db"}},
			"tables": [{"name": "events", "key": "at", "rule": "interval(`+rule+`)", "targets": ["a/events_0", "b/events_1"]}]}`)
	}
	const query = "SELECT * FROM events WHERE at = ?"
	for at, want := range map[string]string{"2025-01-01T00:00:00Z": "a/events_0", "2025-01-02T00:00:00Z": "b/events_1", "2025-01-01T23:59:59+00:00": "a/events_0"} {
		if o := succeed(t, "route", "--config", layout("2025-01-01, 2025-01-03, 24h"), query, at); !strings.Contains(o.stdout, want) {
			t.Errorf("%s: %s", at, o.stdout)
		}
	}
	const shanghai = "2025-01-01 00:00:00,2025-01-03T00:00:00+08:00, 24h, zone = Asia/Shanghai, precision = 1ms"
	for at, want := range map[string]string{"2025-01-01T15:59:59.999Z": "a/events_0", "2025-01-01T16:00:00Z": "b/events_1"} {
		if o := succeed(t, "route", "--config", layout(shanghai), query, at); !strings.Contains(o.stdout, want) {
			t.Errorf("%s in Shanghai: %s", at, o.stdout)
		}
	}
	o := execute(t, "route", "--config", layout("2025-01-01, 2025-01-03, 24h"), "INSERT INTO events (at) VALUES (?)", "2025-01-03T00:00:00Z")
	if o.code != command.ExitUnclean || !strings.Contains(o.stdout, "it is not between") {
		t.Errorf("exit code %d: %s", o.code, o.stdout)
	}
}
