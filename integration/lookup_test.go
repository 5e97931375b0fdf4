// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
	"github.com/shardid/shardid/sharding/shardsql"
)

// directory is users by id in four tables in two databases. Their e-mails are unique, and
// looked up in a third database, or by themselves where that is one of the two; their
// cities are looked up where they are sharded by themselves.
type directory struct {
	home   *sql.DB
	dbs    sharding.DBs
	router *sharding.Router
	routed *sql.DB
}

func directoryOn(t *testing.T, home *sql.DB, dbs sharding.DBs, building bool) *directory {
	t.Helper()
	d := &directory{home: home, dbs: dbs}
	spread := func(tables int, pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"a", "b"}, tables, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var err error
	d.router, err = sharding.New(dbs,
		sharding.Table{Name: "users", Key: "id", Rule: sharding.Mod(4), Map: spread(4, "users_%d"), Lookups: []sharding.Lookup{
			{Column: "email", Table: "users_by_email", Unique: true, Building: building}, {Column: "city", Table: "users_by_city", Building: building},
		}},
		sharding.Table{Name: "users_by_city", Key: "city", Rule: sharding.Mod(2), Map: spread(2, "users_by_city_%d")})
	if err != nil {
		t.Fatal(err)
	}
	d.routed = shardsql.OpenDB(shardsql.Config{Router: d.router, Home: home})
	t.Cleanup(func() { _ = d.routed.Close() })
	return d
}

// create makes the tables.
func (d *directory) create(t *testing.T) *directory {
	t.Helper()
	for _, at := range d.router.Targets("users") {
		database.Exec(t, d.dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(100), city BIGINT, UNIQUE (email))")
		database.Exec(t, d.dbs[at.DB], "CREATE INDEX "+at.Table+"_city ON "+at.Table+" (city)")
	}
	for _, column := range []string{"email", "city"} {
		if err := lookups.Create(t.Context(), d.lookup(column)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *directory) lookup(column string) lookups.Config {
	return lookups.Config{Router: d.router, Home: d.home, Table: "users", Column: column}
}

// sound compares the lookup tables with the shards, and searches values of two rows.
func (d *directory) sound(t *testing.T) {
	t.Helper()
	for _, column := range []string{"email", "city"} {
		if r, err := lookups.Verify(t.Context(), d.lookup(column)); err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
	owner := map[string]string{}
	for _, at := range d.router.Targets("users") {
		for _, email := range database.Texts(t, d.dbs[at.DB], "SELECT email FROM "+at.Table+" WHERE email IS NOT NULL") {
			if other, taken := owner[email]; taken {
				t.Errorf("%s is in %s and in %s", email, other, at)
			}
			owner[email] = at.String()
		}
	}
}

// write executes one of a few statements about a few users and e-mails. It may fail.
func (d *directory) write(ctx context.Context, r *rand.Rand) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // of two that want each other's
	defer cancel()
	id, email, city := r.IntN(12), fmt.Sprintf("u%d@x", r.IntN(4)), r.IntN(3)
	texts := []string{
		fmt.Sprintf("INSERT INTO users (id, email, city) VALUES (%d, '%s', %d)", id, email, city),
		fmt.Sprintf("UPDATE users SET email = '%s', city = %d WHERE id = %d", email, city, id),
		fmt.Sprintf("DELETE FROM users WHERE id = %d", id),
		fmt.Sprintf("UPDATE users SET city = %d WHERE email = '%s'", city, email),
	}
	if r.IntN(3) > 0 {
		_, err := d.routed.ExecContext(ctx, texts[r.IntN(len(texts))])
		return err
	}
	tx, err := d.routed.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, text := range []string{texts[0], texts[r.IntN(3)]} {
		if _, err = tx.ExecContext(ctx, text); err != nil {
			break
		}
	}
	if err != nil || r.IntN(2) == 0 {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func onThree(t *testing.T) map[string]namedDatabase {
	t.Helper()
	all := writing(t)
	all["PostgreSQL"] = server.SharePostgres(t).Open
	return all
}

// inspectedLookups fails unless Inspect knows the lookup tables of a database.
func inspectedLookups(t *testing.T, home *sql.DB) {
	t.Helper()
	report, err := schema.Inspect(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range report.Tables {
		known := len(of.Findings) == 1 && of.Findings[0].Code == schema.LookupTable
		if strings.Contains(of.Name, "_by_") != known {
			t.Errorf("%+v", of)
		}
	}
	if len(report.Tables) == 0 {
		t.Error("there is no table")
	}
}

func TestLookupsLeadToShardsOnServers(t *testing.T) {
	for name, open := range onThree(t) {
		for _, home := range []string{"", "a"} {
			t.Run(name+", home "+home, func(t *testing.T) {
				dbs := sharding.DBs{"a": open(t, "lookup_a_"+home), "b": open(t, "lookup_b_"+home)}
				at := dbs[home]
				if at == nil {
					at = open(t, "lookup_home")
				}
				d := directoryOn(t, at, dbs, false).create(t)
				inspectedLookups(t, at)
				for id := range 8 {
					database.Exec(t, d.routed, fmt.Sprintf("INSERT INTO users (id, email, city) VALUES (%d, 'u%[1]d@x', %d)", id, id%2))
				}
				for _, text := range []string{
					"INSERT INTO users (id, email, city) VALUES (9, 'u2@x', 1)", "INSERT INTO users (id, email, city) VALUES (10, 'u2@x', 1)",
					"UPDATE users SET email = 'u3@x' WHERE id = 4",
				} {
					if _, err := d.routed.ExecContext(t.Context(), text); err == nil || !strings.Contains(err.Error(), "1062") && !strings.Contains(err.Error(), "23505") {
						t.Errorf("%s: %v", text, err)
					}
				}
				table := "users"
				if name == "PostgreSQL" {
					table = database.Texts(t, dbs["a"], "SELECT current_schema()")[0] + ".users"
				}
				database.Exec(t, d.routed, "UPDATE "+table+" SET email = 'v4@x' WHERE email = 'u4@x'")
				database.Exec(t, d.routed, "DELETE FROM users WHERE email = 'u5@x'")
				database.Exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (9, 'u4@x', 1)")
				database.Exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (10, 'u5@x', 1)")
				tx, err := d.routed.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{"INSERT INTO users (id, email, city) VALUES (11, 'u11@x', 1)", "DELETE FROM users WHERE id = 7"} {
					if _, err := tx.ExecContext(t.Context(), text); err != nil {
						t.Fatal(err)
					}
				}
				if err := tx.Rollback(); err != nil {
					t.Fatal(err)
				}
				for query, want := range map[string]int64{
					"SELECT id FROM users WHERE email = 'v4@x'": 4, "SELECT id FROM users WHERE email = 'u4@x'": 9, "SELECT id FROM users WHERE email = 'u5@x'": 10,
					"SELECT id FROM users WHERE email = 'u7@x'": 7, "SELECT COUNT(*) FROM users WHERE email IN ('u11@x', 'u0@x')": 1, "SELECT COUNT(*) FROM users WHERE city = 1": 5,
				} {
					var got int64
					if err := d.routed.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
						t.Errorf("%s: %d, %v, want %d", query, got, err, want)
					}
				}
				r, err := lookups.Verify(t.Context(), d.lookup("email"))
				if err != nil || r.LeftOver != 0 {
					t.Errorf("%+v, %v", r, err)
				}
				d.sound(t)
			})
		}
	}
}

// A row without a value has NULL, which has no owner, unless its column has a default: only the database knows that.
func TestARowWithoutALookedUpValueNeedsNoNULLInItsText(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			d := directoryOn(t, open(t, "empty_home"), sharding.DBs{"a": open(t, "empty_a"), "b": open(t, "empty_b")}, false).create(t)
			for _, text := range []string{
				"INSERT INTO users (id, city) VALUES (1, 7)", "INSERT INTO users (id, email, city) VALUES (2, DEFAULT, 7), (6, DEFAULT, 7)", "INSERT INTO users (id, email, city) VALUES (4, 'u4@x', DEFAULT)",
				"INSERT INTO users (id) VALUES (5)",
			} {
				database.Exec(t, d.routed, text)
			}
			for query, want := range map[string]int64{"SELECT COUNT(*) FROM users WHERE city = 7": 3, "SELECT id FROM users WHERE email = 'u4@x'": 4, "SELECT COUNT(*) FROM users WHERE email IS NULL AND city IS NULL": 1} {
				var got int64
				if err := d.routed.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
					t.Errorf("%s: %d, %v, want %d", query, got, err, want)
				}
			}
			d.sound(t)
			for _, to := range []string{"''", "'NULL'", "'none'"} {
				d = directoryOn(t, d.home, d.dbs, false)
				for _, at := range d.router.Targets("users") {
					database.Exec(t, d.dbs[at.DB], "ALTER TABLE "+at.Table+" ALTER COLUMN email SET DEFAULT "+to)
				}
				for _, text := range []string{"INSERT INTO users (id, city) VALUES (9, 7)", "INSERT INTO users (id, email, city) VALUES (9, DEFAULT, 7)"} {
					if _, err := d.routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrLookup) {
						t.Errorf("the default is %s: %s: %v", to, text, err)
					}
				}
			}
		})
	}
}

func TestWritersOfTheSameValuesNeverOwnOneTwice(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			d := directoryOn(t, open(t, "owned_home"), sharding.DBs{"a": open(t, "owned_a"), "b": open(t, "owned_b")}, false).create(t)
			var wg sync.WaitGroup
			const writers = 6
			writes := 60
			if effort.Soak() {
				writes = 3000
			}
			var done atomic.Int64
			for w := range writers {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(w), 1))
					for range writes {
						if d.write(t.Context(), r) == nil {
							done.Add(1)
						}
					}
				})
			}
			wg.Wait()
			d.sound(t)
			if n := done.Load(); n < int64(writers*writes/10) { // the others want what somebody else owns
				t.Errorf("%d of %d writes succeed", n, writers*writes)
			}
		})
	}
}

// lookupWriterVar makes a test start a writer instead: it has the DSNs of the databases.
const lookupWriterVar = "SHARDID_TEST_LOOKUP_WRITER"

// A transaction reads the state of its beginning, where the other owner has no row yet. Rows that it has deleted itself are
// free.
func TestATransactionThatReadsAnOlderStateTakesNoValueFromARowThatWasInsertedSince(t *testing.T) {
	for name, open := range onThree(t) {
		for _, home := range []string{"", "a"} {
			for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
				if name != "PostgreSQL" && (home == "a" || level == sql.LevelSerializable) {
					continue // the other writer waits there until the transaction ends
				}
				t.Run(fmt.Sprintf("%s, home %s, %v", name, home, level), func(t *testing.T) {
					suffix := home + strconv.Itoa(int(level))
					dbs := sharding.DBs{"a": open(t, "older_a"+suffix), "b": open(t, "older_b"+suffix)}
					at := dbs[home]
					if at == nil {
						at = open(t, "older_home"+suffix)
					}
					d := directoryOn(t, at, dbs, false).create(t)
					database.Exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (6, 'old@x', 1)")
					tx, err := d.routed.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = tx.Rollback() }()
					var n int
					if err := tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM users WHERE id = 0").Scan(&n); err != nil {
						t.Fatal(err)
					}
					if home == "a" {
						database.Exec(t, tx, "DELETE FROM users WHERE id = 6")
						database.Exec(t, tx, "INSERT INTO users (id, email, city) VALUES (8, 'old@x', 1)")
					}
					database.Exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (2, 'new@x', 1)")
					if _, err := tx.ExecContext(t.Context(), "INSERT INTO users (id, email, city) VALUES (0, 'new@x', 1)"); err == nil {
						t.Errorf("two rows have a unique value: %v", tx.Commit())
					}
					_ = tx.Rollback()
					d.sound(t)
				})
			}
		}
	}
}

func openedAll(t *testing.T, dsns []string) (dbs []*sql.DB) {
	t.Helper()
	for _, dsn := range dsns {
		db, err := sql.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		dbs = append(dbs, db)
	}
	return dbs
}

// writeForEver prints each statement that it executed, until it is killed.
func writeForEver(t *testing.T, dsns []string) {
	t.Helper()
	dbs := openedAll(t, dsns)
	d := directoryOn(t, dbs[0], sharding.DBs{"a": dbs[1], "b": dbs[2]}, false)
	for range 6 {
		go func() {
			for r := rand.New(rand.NewPCG(rand.Uint64(), 1)); ; {
				_ = d.write(context.Background(), r) // duplicates, deadlocks, a server that is away
				_, _ = fmt.Fprintln(os.Stdout, "wrote")
			}
		}()
	}
	<-t.Context().Done()
}

// killWriter starts a writer and kills it after some statements.
func killWriter(t *testing.T, m *server.MariaDB, statements int, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), lookupWriterVar+"="+strings.Join([]string{m.DSN("owned_home"), m.DSN("owned_a"), m.DSN("owned_b")}, " "))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && statements > 0 {
		statements--
	}
	kill()
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the writer ended by itself: %v", err)
	}
}

// Programs that write with lookups are killed, and every third time the server with them.
func TestNoValueIsOwnedTwiceWhenWritersAndTheServerAreKilled(t *testing.T) {
	if dsns := os.Getenv(lookupWriterVar); dsns != "" {
		writeForEver(t, strings.Fields(dsns))
		return
	}
	m := server.RunMariaDB(t, "--innodb-flush-log-at-trx-commit=1")
	home, dbs := m.Open(t, "owned_home"), sharding.DBs{"a": m.Open(t, "owned_a"), "b": m.Open(t, "owned_b")}
	d := directoryOn(t, home, dbs, false).create(t)
	kills, left := effort.Cases(20, 1000), int64(0)
	for i := range kills {
		server := func() {}
		if i%3 == 2 {
			server = m.Kill
		}
		killWriter(t, m, 20+rand.IntN(60), server)
		if i%3 == 2 {
			if err := m.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		d.sound(t)
		r, err := lookups.Tidy(t.Context(), d.lookup("email"))
		if err != nil {
			t.Error(err)
		}
		left += r.Removed
	}
	t.Logf("%d kills left %d entries of e-mails over", kills, left)
}

// A program runs while the column is made wider only on the shards.
func TestATextIsNotCutInALookupTableThatIsNarrowerThanTheColumn(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			d := directoryOn(t, open(t, "wide_home"), sharding.DBs{"a": open(t, "wide_a"), "b": open(t, "wide_b")}, false).create(t)
			database.Exec(t, d.routed, "INSERT INTO users (id, email, city) VALUES (1, 'one@x', 1)")
			change := "MODIFY email VARCHAR(200)"
			if name == "PostgreSQL" {
				change = "ALTER email TYPE VARCHAR(200)"
			}
			for _, at := range d.router.Targets("users") {
				database.Exec(t, d.dbs[at.DB], "ALTER TABLE "+at.Table+" "+change)
			}
			long := strings.Repeat("l", 100)
			for _, text := range []string{
				"INSERT INTO users (id, email, city) VALUES (2, '" + long + "ong@x', 1)", "UPDATE users SET email = '" + long + "onger@x' WHERE id = 1",
			} {
				if _, err := d.routed.ExecContext(t.Context(), text); err == nil || !strings.Contains(err.Error(), "lookup table users_by_email: ") {
					t.Errorf("%s: %v", text, err)
				}
			}
			d.sound(t)
		})
	}
}

// A column that keeps seconds rounds a value with fractions.
func TestAValueThatItsColumnRoundsHasOneOwnerToo(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			home, dbs := open(t, "rounded_home"), sharding.DBs{"a": open(t, "rounded_a"), "b": open(t, "rounded_b")}
			spread, err := sharding.Spread([]string{"a", "b"}, 4, "visits_%d")
			if err != nil {
				t.Fatal(err)
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "visits", Key: "user_id", Rule: sharding.Mod(4), Map: spread,
				Lookups: []sharding.Lookup{{Column: "began", Table: "visits_by_time"}, {Column: "ended", Table: "visits_by_end", Unique: true}}})
			if err != nil {
				t.Fatal(err)
			}
			seconds := "DATETIME"
			if name == "PostgreSQL" {
				seconds = "TIMESTAMP(0)"
			}
			for _, at := range router.Targets("visits") {
				database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id INT PRIMARY KEY, user_id BIGINT, began "+seconds+", ended "+seconds+" UNIQUE)")
			}
			for _, column := range []string{"began", "ended"} {
				if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: home, Table: "visits", Column: column}); err != nil {
					t.Fatal(err)
				}
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
			defer func() { _ = routed.Close() }()
			database.Exec(t, routed, "INSERT INTO visits (id, user_id, began, ended) VALUES (1, 1, '2024-01-01 10:00:00.6', '2024-01-01 11:00:00.6')")
			for _, text := range []string{
				"INSERT INTO visits (id, user_id, began, ended) VALUES (2, 1, '2024-01-01 10:00:00.6', NULL)",
				"INSERT INTO visits (id, user_id, began, ended) VALUES (3, 2, NULL, '2024-01-01 11:00:00.6')",
				"UPDATE visits SET ended = '2024-01-01 12:00:00.6' WHERE user_id = 1", "UPDATE visits SET began = '2024-01-01 12:00:00.6' WHERE user_id = 1",
			} {
				if _, err := routed.ExecContext(t.Context(), text); !errors.Is(err, sharding.ErrLookup) {
					t.Errorf("%s: %v", text, err)
				}
			}
			database.Exec(t, routed, "INSERT INTO visits (id, user_id, began, ended) VALUES (2, 1, '2024-01-01 10:00:01', NULL)")
			for _, column := range []string{"began", "ended"} {
				if r, err := lookups.Verify(t.Context(), lookups.Config{Router: router, Home: home, Table: "visits", Column: column}); err != nil {
					t.Errorf("%s: %+v, %v", column, r, err)
				}
			}
		})
	}
}

// lookedUp is a model whose e-mail is looked up.
type lookedUp struct {
	ID    int64   `gorm:"primaryKey;autoIncrement:false"`
	Email *string `gorm:"size:100;uniqueIndex"`
	City  *int64  `gorm:"index"`
}

func (lookedUp) TableName() string { return "users" }

func TestASecondOwnerIsADuplicatedKeyOfGORM(t *testing.T) {
	open := server.ShareMariaDB(t).Open
	d := directoryOn(t, open(t, "gorm_lookup"), sharding.DBs{"a": open(t, "gorm_lookup_a"), "b": open(t, "gorm_lookup_b")}, false)
	db := database.OpenGORM(t, d.home, true)
	db.TranslateError = true
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: d.router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &lookedUp{}); err != nil {
		t.Fatal(err)
	}
	email := func(text string) *string { return &text }
	if err := db.Create(&lookedUp{ID: 1, Email: email("One@x")}).Error; err != nil {
		t.Fatal(err)
	}
	for _, u := range []lookedUp{{ID: 2, Email: email("one@x")}, {ID: 3, Email: email("oné@x")}, {ID: 5, Email: email("one@x")}} {
		if err := db.Create(&u).Error; !errors.Is(err, gorm.ErrDuplicatedKey) {
			t.Errorf("%d: %v", u.ID, err)
		}
	}
	var found lookedUp
	if err := db.First(&found, "email = ?", "ONE@X").Error; err != nil || found.ID != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	d.sound(t)
}

// On MariaDB a lookup is filled while writers, which keep it, change the rows.
// columnsOf are columns of many types, and a row of them, for a database's kind.
func columnsOf(kind string) (columns string, row string) {
	if kind == "PostgreSQL" {
		return "n NUMERIC(20,4), f REAL, d DOUBLE PRECISION, b BYTEA, j JSONB, u UUID, at TIMESTAMPTZ NOT NULL, day DATE, a INT[], ok BOOLEAN NOT NULL, s SMALLINT",
			"'12.3400', 0.1, 0.1, '\\x00ff', '{\"b\": [1, null], \"a\": \"x\"}', '00000000-0000-0000-0000-00000000000a', '2026-01-02 03:04:05.678901+02', '2026-01-02', '{1,2}', true, -7"
	}
	return "n DECIMAL(20,4), f FLOAT, d DOUBLE, b VARBINARY(10), j JSON, e ENUM('small', 'big'), o SET('x', 'y'), at TIMESTAMP(6) NOT NULL DEFAULT '2026-01-02 03:04:05.678901', day DATE, h TIME(3), y YEAR, bits BIT(9), u BIGINT UNSIGNED NOT NULL, s SMALLINT, t TINYINT(1), c CHAR(5), l MEDIUMTEXT, blobs BLOB",
		"12.34, 0.1, 0.1, X'00FF', '{\"b\": [1, null], \"a\": \"x\"}', 'big', 'x,y', '2026-01-02 03:04:05.678901', '2026-01-02', '-12:34:56.789', 2026, b'100000001', 18446744073709551615, -7, 1, 'ab ', 'long', X'0001'"
}

// routerOfGuests routes guests, with a unique e-mail, to tables of one database.
func routerOfGuests(t *testing.T, db *sql.DB, tables int) *sharding.Router {
	t.Helper()
	m, err := sharding.Spread([]string{"a"}, tables, "guests_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "guests", Key: "id", Rule: sharding.Mod(tables), Map: m, Lookups: []sharding.Lookup{{Column: "email", Table: "guests_by_email", Unique: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return router
}

// There is no lookup table, so a query that read it would fail.
func TestOneStatementFindsTheRowOfAUniqueValueWhereAllTablesAreInOneDatabase(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			db := open(t, "guests")
			router := routerOfGuests(t, db, 4)
			columns, row := columnsOf(name)
			for _, at := range router.Targets("guests") {
				database.Exec(t, db, "CREATE TABLE "+at.Table+" (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(100) NOT NULL, "+columns+", UNIQUE (email))")
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
			t.Cleanup(func() { _ = routed.Close() })
			database.Exec(t, db, "INSERT INTO guests_2 VALUES (6, 'a@x', "+row+")")
			param := map[bool]string{true: "$1", false: "?"}[name == "PostgreSQL"]
			all := strings.Join(columnNames(t, db, "SELECT * FROM guests_2 WHERE 1 = 0"), ", ")
			for _, query := range []string{"SELECT " + all + " FROM guests WHERE email = %s", "SELECT id, at AS seen, n + 1 FROM guests WHERE id < 10 AND email = %s ORDER BY at DESC, id LIMIT 1"} {
				routedQuery := fmt.Sprintf(query, param)
				plain := strings.Replace(routedQuery, "guests", "guests_2 AS guests", 1)
				if got, want := answerOf(t, routed, routedQuery, "a@x"), answerOf(t, db, plain, "a@x"); got != want {
					t.Errorf("%s is answered\n%s\nand one table answers\n%s", query, got, want)
				}
				if got := answerOf(t, routed, routedQuery, "b@x"); strings.Contains(got, "row") {
					t.Errorf("%s finds %s", query, got)
				}
			}
		})
	}
}

// A statement that asked all tables at once would return the name as the email.
func TestARowIsReadAsItsOwnTableHasItsColumns(t *testing.T) {
	for name, open := range onThree(t) {
		t.Run(name, func(t *testing.T) {
			db := open(t, "altered")
			router := routerOfGuests(t, db, 2)
			database.Exec(t, db, "CREATE TABLE guests_0 (id BIGINT NOT NULL PRIMARY KEY, email VARCHAR(100) NOT NULL UNIQUE, name VARCHAR(100))")
			database.Exec(t, db, "CREATE TABLE guests_1 (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100), email VARCHAR(100) NOT NULL UNIQUE, added BIGINT)")
			if err := lookups.Create(t.Context(), lookups.Config{Router: router, Home: db, Table: "guests", Column: "email"}); err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: db})
			t.Cleanup(func() { _ = routed.Close() })
			for id := range 2 {
				email := fmt.Sprintf("'guest %d'", id)
				database.Exec(t, routed, fmt.Sprintf("INSERT INTO guests (id, email, name) VALUES (%d, %s, 'Ada')", id, email))
				query := "SELECT * FROM guests WHERE email = " + email
				plain := strings.Replace(query, "guests", fmt.Sprintf("guests_%d AS guests", id), 1)
				if got, want := answerOf(t, routed, query), answerOf(t, db, plain); got != want {
					t.Errorf("%s is answered\n%s\nand one table answers\n%s", query, got, want)
				}
			}
		})
	}
}

// columnNames returns the names of a query's columns.
func columnNames(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err := errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return names
}

// answerOf is what a query answers: of each column its name, its type, its digits and whether it may be
// NULL, and the rows. A union of two equal ENUMs or SETs is a text, and MariaDB names the
// length of texts in a union.
func answerOf(t *testing.T, db asker, query string, args ...any) string {
	t.Helper()
	answer, err := readAnswer(t.Context(), db, query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// preparedOnce asks by a prepared statement.
type preparedOnce struct{ *sql.Stmt }

func (p preparedOnce) QueryContext(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
	return p.Stmt.QueryContext(ctx, args...)
}

// readAnswer returns what answerOf does, or the error of the query.
func readAnswer(ctx context.Context, db asker, query string, args ...any) (string, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	types, err := rows.ColumnTypes()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, c := range types {
		nullable, known := c.Nullable()
		kind := strings.NewReplacer("ENUM", "CHAR", "SET", "CHAR", "VARCHAR", "CHAR", "MEDIUMTEXT", "TEXT", "LONGTEXT", "TEXT").Replace(c.DatabaseTypeName())
		precision, scale, isDecimal := c.DecimalSize()
		fmt.Fprintln(&out, c.Name(), kind, c.ScanType(), nullable, known, precision, scale, isDecimal)
	}
	for rows.Next() {
		values, into := make([]any, len(types)), make([]any, len(types))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return "", err
		}
		out.WriteString("row")
		for _, v := range values {
			fmt.Fprintf(&out, " %T %#v", v, v)
		}
		out.WriteString("\n")
	}
	return out.String(), rows.Err()
}
