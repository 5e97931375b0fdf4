// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
)

// outcome is what a command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

func execute(t *testing.T, args ...string) outcome {
	t.Helper()
	return executeWith(t, &program{}, args...)
}

func executeWith(t *testing.T, p *program, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := p.run(t.Context(), args, &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// succeed executes a command line that has to work.
func succeed(t *testing.T, args ...string) outcome {
	t.Helper()
	o := execute(t, args...)
	if o.code != command.ExitOK {
		t.Fatalf("%v: exit code %d, %s", args, o.code, o.stderr)
	}
	return o
}

const smallShop = `
CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL);
CREATE TABLE order_items (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id INTEGER, sku TEXT);
CREATE TABLE links (a INTEGER, b INTEGER, PRIMARY KEY (a, b));
CREATE TABLE names (name TEXT PRIMARY KEY);
CREATE TABLE totals (id INTEGER PRIMARY KEY AUTOINCREMENT, n INTEGER, twice INTEGER AS (2 * n));
CREATE TABLE empty (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE full (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE "odd one" (id INTEGER PRIMARY KEY AUTOINCREMENT);
CREATE TABLE odd_column (id INTEGER PRIMARY KEY AUTOINCREMENT, "a b" TEXT);
CREATE TABLE orders_00 (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id INTEGER);
INSERT INTO orders_00 (order_id) VALUES (1);
INSERT INTO orders (user_id) VALUES (1), (2), (3);
INSERT INTO order_items (order_id, sku) VALUES (1, 'NUT'), (2, 'LAMP'), (NULL, 'STRAY');
INSERT INTO totals (n) VALUES (1);
INSERT INTO full VALUES (9223372036854775807);
INSERT INTO "odd one" VALUES (1);
INSERT INTO odd_column VALUES (1, 'x');
`

// Everything in here is the user's mistake: one sentence that says what to do,
// exit code 2, and nothing written.
func TestBadInputIsOneClearSentence(t *testing.T) {
	shop := newFile(t, smallShop)
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("this is no database, it is a text of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	demo := func(args ...string) []string { return append([]string{"demo", "--db", shop}, args...) }
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"unknown command":          {[]string{"decod"}, `there is no command "decod"; give one of audit, completion, ddl, decode, demo, doctor, export, inspect, lookup, migrate, rebalance, route, schema, serve, or see shardid --help`},
		"unknown flag":             {[]string{"demo", "--bogus"}, "unknown flag: --bogus; see shardid demo --help"},
		"no source":                {[]string{"inspect"}, "give --source or set SHARDID_SOURCE"},
		"missing file":             {[]string{"inspect", "--source", "nowhere.db"}, "there is no file nowhere.db; name an existing SQLite file"},
		"missing file URL":         {[]string{"inspect", "--source", "file:nowhere.db?mode=rwc"}, "there is no file file:nowhere.db"},
		"no database file":         {[]string{"inspect", "--source", text}, "cannot be read as a SQLite database"},
		"directory":                {[]string{"inspect", "--source", filepath.Dir(text)}, "is not a file; name a SQLite file"},
		"DSN without address":      {[]string{"inspect", "--source", "app:s3cret@127.0.0.1:1/shop"}, "app:***@127.0.0.1:1/shop cannot be read"},
		"DSN without database":     {[]string{"inspect", "--source", "app:s3cret@tcp(127.0.0.1:1)/"}, "names no database"},
		"URL with odd password":    {[]string{"inspect", "--source", "mysql://app:s3cret/x@127.0.0.1:1/shop"}, "write special characters in the password as %XX"},
		"URL with a bare percent":  {[]string{"inspect", "--source", "mysql://app:s3cret%@127.0.0.1:1/shop"}, "write special characters in the password as %XX"},
		"DSN without a host":       {[]string{"inspect", "--source", "app:s3cret"}, "there is no file app:***"},
		"the id 0":                 {[]string{"decode", "0"}, "generators begin at 1"},
		"no id":                    {[]string{"decode"}, "which ids? give one or more"},
		"negative id":              {[]string{"decode", "-5"}, "-5 is negative"},
		"negative id after --":     {[]string{"decode", "--", "-5"}, "-5 is negative"},
		"id with letters":          {[]string{"decode", "12x"}, `"12x" is not an id in decimal form`},
		"id above int64":           {[]string{"decode", "9223372036854775808"}, "at most 9223372036854775807"},
		"id out of the layout":     {[]string{"decode", "--layout", "jssafe", "9007199254740992"}, "which has 53 bits; choose another --layout"},
		"unknown layout":           {[]string{"decode", "--layout", "leaf", "1"}, `--layout "leaf" is unknown; give one of baidu`},
		"layout without epoch":     {[]string{"decode", "--layout", "time:41,sequence:12", "1"}, "needs --epoch"},
		"layout of nonsense":       {[]string{"decode", "--layout", "time:41,colour:3", "--epoch", "0", "1"}, `"colour" is not a field`},
		"layout without bits":      {[]string{"decode", "--layout", "time,sequence:12", "1"}, "time needs a number of bits"},
		"invalid without epoch":    {[]string{"decode", "--layout", "time:41", "1"}, "--layout: keygen: layout: Fields"},
		"unit of nothing":          {[]string{"decode", "--unit", "0s", "1"}, "it must be between 1ns and 1h"},
		"empty epoch":              {[]string{"decode", "--epoch", "", "1"}, `--epoch "" is not a time`},
		"forgotten --source":       {[]string{"inspect", "app:s3cret@tcp(db:3306)/shop"}, `inspect takes no arguments, and "app:***@tcp(db:3306)/shop" is one; give the database with --source`},
		"DSN as db":                {[]string{"demo", "--db", "app:s3cret@tcp(db:3306)/shop", "--table", "t"}, "app:***@tcp(db:3306)/shop is a server; name a SQLite file"},
		"mysql's way of passwords": {[]string{"inspect", "-psecretpw"}, "unknown flag: -p; see"},
		"layout too wide":          {[]string{"decode", "--layout", "time:60,sequence:12", "--epoch", "0", "1"}, "--layout: keygen: layout: Fields"},
		"bad epoch":                {[]string{"decode", "--epoch", "yesterday", "1"}, `--epoch "yesterday" is not a time`},
		"bad unit":                 {[]string{"decode", "--unit", "-1s", "1"}, "it must be between 1ns and 1h"},
		"unknown form":             {[]string{"decode", "--form", "base64", "1"}, "give one of decimal, base2"},
		"unknown dialect":          {[]string{"schema", "--dialect", "oracle"}, "give mysql, postgres or sqlite"},
		"no dialect":               {[]string{"schema"}, "give --dialect mysql, postgres or sqlite"},
		"no rows":                  {[]string{"demo", "--rows", "10000001"}, "give a number from 1 to 10000000"},
		"rows with db":             {demo("--table", "orders", "--rows", "5"), "leave it out with --db"},
		"table without db":         {[]string{"demo", "--table", "orders"}, "name its file with --db"},
		"db without table":         {demo(), "--db needs --table"},
		"db that is missing":       {[]string{"demo", "--db", "nowhere.db", "--table", "t"}, "there is no file nowhere.db"},
		"unknown table":            {demo("--table", "nowhere"), `there is no table "nowhere"; the tables are empty, full, links`},
		"composite key":            {demo("--table", "links"), "the primary key is (a, b); name a table with a single integer key"},
		"text key":                 {demo("--table", "names"), "name a table with a single integer key"},
		"no ids left":              {demo("--table", "full"), "leaves no room for new ones"},
		"generated column":         {demo("--table", "totals"), "column totals.twice is computed by the database"},
		"empty table":              {demo("--table", "empty"), "table empty is empty; name one with rows"},
		"odd table name":           {demo("--table", "odd one"), "not a plain SQL name"},
		"odd column name":          {demo("--table", "odd_column"), `column "a b": not a plain SQL name`},
		"child without column":     {demo("--table", "orders", "--child", "order_items"), "as in order_items.order_id"},
		"unknown child":            {demo("--table", "orders", "--child", "items.order_id"), `there is no table "items"`},
		"unknown child column":     {demo("--table", "orders", "--child", "order_items.orderid"), `no column "orderid"; its columns are id, order_id, sku`},
		"child without parent":     {demo("--table", "orders", "--child", "order_items.order_id"), "holds no integer in 1 of its rows"},
		"name of a shard table":    {demo("--table", "orders", "--child", "orders_00.order_id"), "give physical tables other names"},
		"own child":                {demo("--table", "orders", "--child", "ORDERS.user_id"), "name another table"},
	} {
		t.Run(name, func(t *testing.T) {
			empty := t.TempDir()
			t.Chdir(empty)
			t.Setenv("TMPDIR", empty)
			args := test.args
			if args[0] == "demo" {
				args = append(args, "--dir", filepath.Join(empty, "made"))
			}
			got := execute(t, args...)
			if got.code != command.ExitInput {
				t.Errorf("exit code %d", got.code)
			}
			if !strings.Contains(got.stderr, test.says) || !oneSentence(got.stderr) {
				t.Errorf("stderr: %q, want one line with %q", got.stderr, test.says)
			}
			if got.stdout != "" {
				t.Errorf("stdout: %q", got.stdout)
			}
			if strings.Contains(got.stderr, "s3cret") {
				t.Errorf("the password shows: %s", got.stderr)
			}
			if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
				t.Errorf("written: %v %v", left, err)
			}
		})
	}
	beside, err := os.ReadDir(filepath.Dir(shop))
	if err != nil || len(beside) != 1 {
		t.Errorf("beside the database: %v %v", beside, err)
	}
}

// oneSentence: one line, of our own.
func oneSentence(s string) bool {
	return strings.HasPrefix(s, "shardid: ") && strings.Count(s, "\n") == 1 && strings.HasSuffix(s, "\n")
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	for args, want := range map[string]string{
		"":                  "Exit codes of",
		"--help":            "Exit codes of",
		"help demo":         "source_rows",
		"demo --help":       "--child",
		"inspect --help":    "SHARDID_SOURCE",
		"decode --help":     presetNames(),
		"schema --help":     "leaf_alloc",
		"export --help":     "offset_step(offset, step)",
		"doctor --help":     "--timeout",
		"audit --help":      "--ids",
		"--version":         "shardid ",
		"completion bash":   "shardid",
		"__complete dec":    "decode",
		"completion --help": "zsh",
	} {
		o := succeed(t, strings.Fields(args)...)
		if !strings.Contains(o.stdout, want) {
			t.Errorf("%q printed %q", args, o.stdout)
		}
		if o.stderr != "" && !strings.HasPrefix(args, "__complete") {
			t.Errorf("%q: stderr %q", args, o.stderr)
		}
	}
}

func TestInterruptionHasItsOwnExitCode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	dir := t.TempDir()
	code := run(ctx, []string{"demo", "--rows", "10", "--dir", dir}, &stdout, &stderr)
	if code != command.ExitInterrupted || !strings.Contains(stderr.String(), "shardid: interrupted\n") || stdout.Len() > 0 {
		t.Errorf("code %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
	if !strings.Contains(stderr.String(), "unfinished files are in "+dir) {
		t.Errorf("stderr does not say what is left: %q", &stderr)
	}
}

func TestTheVersionNamesATagOrACommit(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "4f243f0"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: commit}, "v0.1.0"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, GoVersion: "go1.26.8", Settings: commit}, "development version of 4f243f0 with changes, built with go1.26.8"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, GoVersion: "go1.26.8"}, "development version, built with go1.26.8"},
	} {
		if got := versionOf(&c.info); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
