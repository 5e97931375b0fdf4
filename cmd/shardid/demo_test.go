// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/demo"
	"github.com/shardid/shardid/sharding"
)

// counts is what demo prints for programs.
type counts struct {
	SourceRows   int64   `json:"source_rows"`
	CopiedRows   int64   `json:"copied_rows"`
	InsertedGORM int64   `json:"inserted_gorm"`
	InsertedSQLX int64   `json:"inserted_sqlx"`
	Lost         int64   `json:"lost"`
	Duplicates   int64   `json:"duplicates"`
	Misrouted    int64   `json:"misrouted"`
	Seconds      float64 `json:"seconds"`
	Shards       []shard `json:"shards"`

	UpdatedRows    int64   `json:"updated_rows"`
	DeletedRows    int64   `json:"deleted_rows"`
	SwitchPauseMS  float64 `json:"switch_pause_ms"`
	LongestPauseMS float64 `json:"longest_pause_ms"`
}

type shard struct {
	DB    string `json:"db"`
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
}

func (c counts) inShards() int64 {
	var n int64
	for _, s := range c.Shards {
		n += s.Rows
	}
	return n
}

func parse(t *testing.T, o outcome) counts {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(o.stdout))
	d.DisallowUnknownFields()
	var c counts
	if err := d.Decode(&c); err != nil || d.More() {
		t.Fatalf("%v in %s", err, o.stdout)
	}
	c.Seconds = 0
	return c
}

func TestDemoShardsTheDatabaseItMakesAndTwiceTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "directory")
	first := succeed(t, "demo", "--json", "--rows", "1000", "--dir", dir)
	c := parse(t, first)
	if c.SourceRows < 2000 || c.SourceRows != c.CopiedRows || c.InsertedGORM != 300 || c.InsertedSQLX != 300 {
		t.Errorf("%+v", c)
	}
	if c.inShards() != c.CopiedRows+c.InsertedGORM+c.InsertedSQLX {
		t.Errorf("%d rows on the shards, %+v", c.inShards(), c)
	}
	if c.UpdatedRows < 100 || c.DeletedRows < 100 || c.SwitchPauseMS <= 0 || c.LongestPauseMS <= 0 {
		t.Errorf("%+v", c)
	}
	checkShards(t, c)
	second := parse(t, succeed(t, "demo", "--json", "--rows", "1000", "--dir", dir))
	if c.inShards() != second.inShards() || c.InsertedGORM != second.InsertedGORM || c.InsertedSQLX != second.InsertedSQLX {
		t.Errorf("first %+v\nthen %+v", c, second)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("in the directory: %v %v", left, err)
	}
}

// checkShards: two databases with four tables each of both kinds, all in use.
func checkShards(t *testing.T, c counts) {
	t.Helper()
	perDB := map[string]int{}
	for _, s := range c.Shards {
		perDB[s.DB]++
		if s.Rows == 0 {
			t.Errorf("%s of %s has no rows", s.Table, s.DB)
		}
	}
	if !maps.Equal(perDB, map[string]int{"shard0": 8, "shard1": 8}) {
		t.Errorf("tables by database: %v", perDB)
	}
}

func TestDemoJSONHasTheseKeysInThisOrder(t *testing.T) {
	o := succeed(t, "demo", "--json", "--rows", "8", "--dir", t.TempDir())
	at := -1
	for _, key := range []string{"source_rows", "copied_rows", "inserted_gorm", "inserted_sqlx", "lost", "duplicates", "misrouted", "seconds", "shards", "db", "table", "rows", "updated_rows", "deleted_rows", "switch_pause_ms", "longest_pause_ms"} {
		next := strings.Index(o.stdout, `"`+key+`":`)
		if next < at {
			t.Errorf("%s is missing or out of order in\n%s", key, o.stdout)
		}
		at = next
	}
}

func TestDemoTellsPeopleWhatHappened(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	o := succeed(t, "demo", "--rows", "200")
	for _, want := range []string{"DATABASE  TABLE", "shard1    orders_01", "order_items_07", "misrouted ", "source.db", "live.db", "The tables were closed for", "The longest that a writer waited", "Every row is where its key leads to."} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^  [a-z ]{11} +\d+\.\d\d s  `).FindAllString(o.stderr, -1)); n != 11 {
		t.Errorf("%d phases, want 11:\n%s", n, o.stderr)
	}
	if strings.ContainsAny(o.stdout+o.stderr, "\x1b\r") {
		t.Errorf("not plain text:\n%s%s", o.stdout, o.stderr)
	}
	made, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "*", "shard0.db"))
	if err != nil || len(made) != 1 || !strings.Contains(o.stdout, "The files are in "+filepath.Dir(made[0])+"\n") {
		t.Errorf("%v %v is not in\n%s", made, err, o.stdout)
	}
	for line := range strings.SplitSeq(o.stdout+o.stderr, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 && !strings.Contains(line, os.Getenv("TMPDIR")) {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestDemoShardsADatabaseOfYoursAndLeavesItAlone(t *testing.T) {
	for _, s := range samples() {
		for _, mode := range []string{"delete", "wal"} {
			t.Run(s.name+"/"+mode, func(t *testing.T) {
				path := newFile(t, readFile(t, s.script))
				db := openFile(t, path)
				if _, err := db.ExecContext(t.Context(), "PRAGMA journal_mode = "+mode); err != nil {
					t.Fatal(err)
				}
				if err := db.Close(); err != nil { // by which the log is merged
					t.Fatal(err)
				}
				before := sha256.Sum256([]byte(readFile(t, path)))
				c := parse(t, succeed(t, "demo", "--json", "--db", path, "--table", s.table, "--child", s.child, "--dir", t.TempDir()))
				if c.SourceRows != s.rows || c.CopiedRows != s.rows || c.InsertedGORM < 100 || c.InsertedSQLX < 100 {
					t.Errorf("%+v", c)
				}
				checkShards(t, c)
				if sha256.Sum256([]byte(readFile(t, path))) != before {
					t.Error("the source was written to")
				}
				if beside, err := os.ReadDir(filepath.Dir(path)); err != nil || len(beside) != 1 {
					t.Errorf("beside the source: %v %v", beside, err)
				}
			})
		}
	}
}

func TestDemoNeedsNoChild(t *testing.T) {
	path := newFile(t, readFile(t, shop))
	c := parse(t, succeed(t, "demo", "--json", "--db", path, "--table", "PRODUCT", "--dir", t.TempDir()))
	if c.CopiedRows != 2 || c.InsertedGORM != 100 || len(c.Shards) != 8 {
		t.Errorf("%+v", c)
	}
}

// These are demos whose shards are corrupted on purpose, to show that the demo detects it.
func TestDemoFindsWhatIsWrongWithTheShards(t *testing.T) {
	const id = 17 // of an order
	for name, test := range map[string]struct {
		statements []string // %s of the right table, other of another one there
		want       counts
	}{
		"lost":       {[]string{"DELETE FROM right WHERE id = 17"}, counts{Lost: 1}},
		"changed":    {[]string{"UPDATE right SET note = note || '' || x'00' || 'x' WHERE id = 17", "UPDATE right SET total_cents = total_cents + 1 WHERE id = 17"}, counts{Lost: 1}},
		"duplicated": {[]string{"INSERT INTO other SELECT * FROM right WHERE id = 17"}, counts{Duplicates: 1, Misrouted: 1}},
		"moved":      {[]string{"INSERT INTO other SELECT * FROM right WHERE id = 17", "DELETE FROM right WHERE id = 17"}, counts{Misrouted: 1}},
		"invented":   {[]string{"INSERT INTO right SELECT id + 1099511627776, user_id, status, total_cents, note, created_at FROM right WHERE id = 17"}, counts{Duplicates: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &program{beforeCheck: func(ctx context.Context, router *sharding.Router) error {
				right, err := router.Target("orders", id)
				if err != nil {
					return err
				}
				other, err := router.Target("orders", id+2) // in the same database
				if err != nil {
					return err
				}
				for _, statement := range test.statements {
					statement = strings.NewReplacer("right", right.Table, "other", other.Table).Replace(statement)
					if _, err := router.DB(right.DB).ExecContext(ctx, statement); err != nil {
						return err
					}
				}
				return nil
			}}
			o := executeWith(t, p, "demo", "--json", "--rows", "300", "--dir", t.TempDir())
			if o.code != command.ExitUnclean {
				t.Errorf("exit code %d, stderr %s", o.code, o.stderr)
			}
			c := parse(t, o)
			if c.Lost != test.want.Lost || c.Duplicates != test.want.Duplicates || c.Misrouted != test.want.Misrouted {
				t.Errorf("%+v", c)
			}
			if !strings.Contains(o.stderr, "shardid: rows are lost, duplicated or misrouted: ") {
				t.Errorf("stderr: %s", o.stderr)
			}
		})
	}
}

func TestDemoFindsAChildOnAnotherShardThanItsParent(t *testing.T) {
	p := &program{beforeCheck: func(ctx context.Context, router *sharding.Router) error {
		from, err := router.Target("order_items", 17)
		if err != nil {
			return err
		}
		to, err := router.Target("order_items", 18) // in the other database
		if err != nil {
			return err
		}
		var id, quantity, price int64
		var sku string
		db := router.DB(from.DB)
		if err := db.QueryRowContext(ctx, "SELECT id, sku, quantity, price_cents FROM "+from.Table+" WHERE order_id = 17").Scan(&id, &sku, &quantity, &price); err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, "DELETE FROM "+from.Table+" WHERE id = ?", id); err != nil {
			return err
		}
		_, err = router.DB(to.DB).ExecContext(ctx, "INSERT INTO "+to.Table+" VALUES (?, 17, ?, ?, ?)", id, sku, quantity, price)
		return err
	}}
	o := executeWith(t, p, "demo", "--json", "--rows", "300", "--dir", t.TempDir())
	if c := parse(t, o); o.code != command.ExitUnclean || c.Misrouted != 1 || c.Lost != 0 || c.Duplicates != 0 {
		t.Errorf("exit code %d, %s", o.code, o.stdout)
	}
}

func TestDemoSaysWhichUniqueKeysItDoesNotKeep(t *testing.T) {
	path := newFile(t, "CREATE TABLE cust (id INTEGER PRIMARY KEY AUTOINCREMENT, email TEXT, code TEXT UNIQUE);"+
		" CREATE UNIQUE INDEX cust_email ON cust (email); INSERT INTO cust (email, code) VALUES ('a', 'b')")
	o := succeed(t, "demo", "--db", path, "--table", "cust", "--dir", t.TempDir())
	for _, want := range []string{
		"cust: the unique key cust_email on (email) cannot be checked across shards, and is not kept",
		"cust: the unique key on (code) cannot be checked across shards, and is not kept",
	} {
		if !strings.Contains(strings.Join(strings.Fields(o.stderr), " "), want) {
			t.Errorf("no %q in\n%s", want, o.stderr)
		}
	}
}

func TestDemoRefusesAChildThatRefersToAnotherTable(t *testing.T) {
	path := newFile(t, "CREATE TABLE track (id INTEGER PRIMARY KEY); CREATE TABLE invoice (id INTEGER PRIMARY KEY AUTOINCREMENT);"+
		" CREATE TABLE line (id INTEGER PRIMARY KEY AUTOINCREMENT, invoice_id INTEGER REFERENCES invoice (id), track_id INTEGER REFERENCES track (id));"+
		" INSERT INTO track VALUES (1); INSERT INTO invoice VALUES (1); INSERT INTO line VALUES (1, 1, 1)")
	o := execute(t, "demo", "--db", path, "--table", "invoice", "--child", "line.track_id", "--dir", t.TempDir())
	if o.code != command.ExitInput || !strings.Contains(o.stderr, "line.track_id refers to table track; name the column that refers to invoice.id") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
}

func TestDemoReportsWhatTheSystemSaysAboutADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "afile")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "demo", "--rows", "10", "--dir", filepath.Join(file, "x"))
	if o.code != command.ExitInput || !strings.Contains(o.stderr, "not a directory; choose another") || !oneSentence(o.stderr) {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	t.Setenv("TMPDIR", filepath.Join(file, "x"))
	o = execute(t, "demo", "--rows", "10")
	if o.code != command.ExitInput || !strings.Contains(o.stderr, "name a directory with --dir, or set TMPDIR to one") || !oneSentence(o.stderr) {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
}

// Two runs in one directory would delete each other's databases.
func TestDemoKeepsOutOfADirectoryWhereAnotherIsAtWork(t *testing.T) {
	dir := t.TempDir()
	shop := newFile(t, smallShop)
	p := &program{beforeCheck: func(context.Context, *sharding.Router) error {
		for _, args := range [][]string{{"--rows", "10"}, {"--db", shop, "--table", "orders"}} {
			second := execute(t, append([]string{"demo", "--dir", dir}, args...)...)
			if second.code != command.ExitInput || !strings.Contains(second.stderr, "another demo is running there; choose another --dir") {
				t.Errorf("exit code %d, %s", second.code, second.stderr)
			}
		}
		return nil
	}}
	if first := executeWith(t, p, "demo", "--rows", "10", "--dir", dir); first.code != command.ExitOK {
		t.Errorf("exit code %d, %s", first.code, first.stderr)
	}
	succeed(t, "demo", "--rows", "10", "--dir", dir)
}

func TestDemoTouchesNoFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "shardid-demo", "shard0.db")
	if err := os.MkdirAll(filepath.Dir(foreign), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "demo", "--rows", "10", "--dir", dir)
	if o.code != command.ExitInput || !strings.Contains(o.stderr, "was not made by this command; choose another --dir") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	if readFile(t, foreign) != "mine" {
		t.Error("a file was overwritten")
	}
	if o := execute(t, "demo", "--rows", "10", "--dir", foreign); o.code != command.ExitInput || !strings.Contains(o.stderr, "is a file; name a directory") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
}

func TestDemoDoesNotReplaceItsOwnSource(t *testing.T) {
	dir := t.TempDir()
	succeed(t, "demo", "--rows", "10", "--dir", dir)
	source := filepath.Join(dir, "shardid-demo", "source.db")
	o := execute(t, "demo", "--db", source, "--table", "orders", "--dir", dir)
	if o.code != command.ExitInput || !strings.Contains(o.stderr, "is a file that this run would replace; choose another --dir") {
		t.Errorf("exit code %d, %s", o.code, o.stderr)
	}
	c := parse(t, succeed(t, "demo", "--json", "--db", source, "--table", "orders", "--child", "order_items.order_id", "--dir", t.TempDir()))
	if c.CopiedRows < 20 {
		t.Errorf("%+v", c)
	}
}

func TestTheTimesOfTheDemoFitATerminalOf80Columns(t *testing.T) {
	var shown strings.Builder
	result := demo.Result{Apps: map[string]demo.Writes{demo.ViaGORM: {}}, SwitchPauseMS: 12345, LongestPauseMS: 54321}
	if err := printResult(&shown, result); err != nil {
		t.Fatal(err)
	}
	_, times, found := strings.Cut(shown.String(), "\nThe tables were closed for 12345 ms")
	if !found || !strings.Contains(times, "54321 ms") || !strings.Contains(times, "SQLite admits one writer per file") {
		t.Error(shown.String())
	}
	for line := range strings.Lines(shown.String()) {
		if len(line) > 81 {
			t.Errorf("%d letters: %s", len(line), line)
		}
	}
}
