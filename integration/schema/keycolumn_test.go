// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/keycolumn"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding"
)

// keyServer is a database that one has to open with settings.
type keyServer struct {
	name string
	dsn  string // of an empty database
}

func keyServers(t *testing.T) []keyServer {
	t.Helper()
	a, b := server.RunMariaDB(t), server.RunMySQL(t)
	a.Open(t, "keys")
	b.Open(t, "keys")
	return []keyServer{{"MariaDB", a.DSN("keys")}, {"MySQL", b.DSN("keys")}}
}

// open opens it with the driver's parameters and the session's variables.
func (s keyServer) open(t *testing.T, settings url.Values) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", s.dsn+"?"+settings.Encode())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// keyed is four shards of a table, by its column k, and one table with the same rows.
type keyed struct {
	db     *sql.DB
	router *sharding.Router
}

// makeKeyed makes the tables, n of them and the whole one.
func makeKeyed(t *testing.T, db *sql.DB, column string, n int) {
	t.Helper()
	for i := range n + 1 {
		name := fmt.Sprint("t_", i)
		if i == n {
			name = "whole"
		}
		database.Exec(t, db, "DROP TABLE IF EXISTS "+name)
		database.Exec(t, db, "CREATE TABLE "+name+" (id INT AUTO_INCREMENT PRIMARY KEY, k "+column+" NULL)")
	}
}

// newKeyed empties the tables and routes to them by the rule.
func newKeyed(t *testing.T, db *sql.DB, rule sharding.Rule) keyed {
	t.Helper()
	m, err := sharding.Spread([]string{"a"}, rule.Slots(), "t_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "t", Key: "k", Rule: rule, Map: m})
	if err != nil {
		t.Fatal(err)
	}
	k := keyed{db, router}
	for _, name := range append(k.tables(), "whole") {
		database.Exec(t, db, "DELETE FROM "+name)
	}
	return k
}

func (k keyed) tables() (names []string) {
	for _, target := range k.router.Targets("t") {
		names = append(names, target.Table)
	}
	return names
}

// faults returns the findings of the column without notices.
func (k keyed) faults(t *testing.T) []string {
	t.Helper()
	conn, err := k.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	table, _ := k.router.Table("t")
	found, err := keycolumn.Inspect(t.Context(), conn, dialect.MySQL{}, &table, "t_0")
	if err != nil {
		t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(f keycolumn.Fault) bool { return f.Severity == keycolumn.Notice })
	var all []string
	for _, f := range found {
		all = append(all, f.Message)
	}
	return all
}

// write puts a row where the router says, and into the whole table. A key that the
// router or the server refuses is in neither.
func (k keyed) write(t *testing.T, key any) (written bool) {
	t.Helper()
	target, err := k.router.Target("t", key)
	if err != nil {
		return false
	}
	_, err = k.db.ExecContext(t.Context(), "INSERT INTO "+target.Table+" (k) VALUES (?)", key)
	_, errWhole := k.db.ExecContext(t.Context(), "INSERT INTO whole (k) VALUES (?)", key)
	if (err == nil) != (errWhole == nil) {
		t.Fatalf("%v: %v, %v", key, err, errWhole)
	}
	return err == nil
}

// count is the number of rows of a key; some types are not to be compared with some keys.
func (k keyed) count(t *testing.T, table string, key any) (n int, err error) {
	t.Helper()
	err = k.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE k = ?", key).Scan(&n)
	return n, err
}

// lost are the keys under which the router finds other rows than there are in the whole
// table. It is asked for the keys that it takes, and for each that it holds.
func (k keyed) lost(t *testing.T, keys []any) (lost []string) {
	t.Helper()
	for _, key := range append(k.stored(t), keys...) {
		target, err := k.router.Target("t", key)
		if err != nil {
			continue
		}
		got, errGot := k.count(t, target.Table, key)
		want, errWant := k.count(t, "whole", key)
		if (errGot == nil) != (errWant == nil) {
			t.Fatalf("%v: %v, %v", key, errGot, errWant)
		}
		if got != want {
			lost = append(lost, fmt.Sprintf("%v (%T): %d of %d", key, key, got, want))
		}
	}
	return lost
}

// stored are the keys as the driver gives them, and fails for one that nobody can look
// for.
func (k keyed) stored(t *testing.T) (keys []any) {
	t.Helper()
	rows, err := k.db.QueryContext(t.Context(), "SELECT DISTINCT k FROM whole")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var key any
		if err := rows.Scan(&key); err != nil {
			t.Fatal(err)
		}
		if b, ok := key.([]byte); ok {
			key = string(b)
		}
		keys = append(keys, key)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// awkward are keys that databases may regard as equal.
func awkward() []any {
	keys := []any{
		"alice", "Alice", "ALICE", "álice", "alice ", "alíce", "ａlice", "straße", "strasse", "STRASSE", "ﬁ", "fi", "e\u0301", "\u00e9", "a\u00ad", "a",
		"3", "03", "+3", "3 ", " 3", "3e0", "3.0", "0x3", "3abc", "３", "٣", "", "0", "-0", "-3", "2026-01-01", "20260101", "2026-1-1", "70", "1970", "1", "2", "de", "fr", "DE",
		3, 0, -3, 70, 1970, 1, 2, uint64(1<<63 + 5), "9223372036854775813", true, 3.0, []byte("3"), []byte("alice"), nil,
	}
	for i := range int64(8) {
		keys = append(keys, 1<<53+i, strconv.FormatInt(1<<60+i, 10))
	}
	return keys
}

// For every column of a rule, either no row is lost by the rule alone, or a check reports the column. Package shardsql loses
// none in BINARY and UUID, about which there is a notice only.
func TestNoRowIsLostByAKeyUnlessItsColumnWasFound(t *testing.T) {
	list := sharding.List(map[string]sharding.Slot{"de": 0, "DE": 1, "fr": 2, "3": 3})
	plain := sharding.List(map[string]sharding.Slot{"de": 0, "alice": 1, "fr": 2, "3": 3, "ALICE": 1})
	rules := map[string]sharding.Rule{
		"Low": sharding.Low(2), "Mod": sharding.Mod(4), "Hash": sharding.Hash(4), "Ranges": sharding.Ranges(1, 3, 100), "HashText": sharding.HashText(4),
		"Compat": sharding.Compat(4), "CompatText": sharding.CompatText(4), "List": list, "plain List": plain, "List of integers": sharding.List(map[int]sharding.Slot{3: 0, 0: 1, 70: 2}),
	}
	texts, integers := []string{"HashText", "CompatText", "List", "plain List"}, []string{"Low", "Mod", "Hash", "Ranges", "Compat", "List of integers"}
	for _, s := range keyServers(t) {
		columns := map[string][]string{ // with the rules under which nothing is to be found
			"VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": texts,
			"CHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin":    texts,
			"TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin":        texts,
			"VARBINARY(60)": texts,
			"BINARY(60)":    texts, // a notice
			"VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": {"plain List"}, "VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci": {"plain List"},
			"CHAR(5)": {"plain List"}, "TEXT CHARACTER SET latin1": {"plain List"}, "ENUM('fr', 'de', '3', 'alice')": {"plain List"}, "ENUM('DE', 'Alice', 'fr', '3')": {"plain List"},
			"ENUM('de', 'fr', 'DE', '3') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": {"List", "plain List"},
			"ENUM('de', 'alice', 'fr') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin":   nil, "SET('de', 'fr', '3') CHARACTER SET utf8mb4": nil,
			"BIGINT": integers, "BIGINT UNSIGNED": integers, "INT(10) ZEROFILL": integers, "DECIMAL(30)": integers, "TINYINT": integers,
			"DECIMAL(30,2)": nil, "DOUBLE": nil, "FLOAT": nil, "YEAR": nil, "BIT(64)": nil, "DATE": nil, "DATETIME": nil,
		}
		if s.name == "MySQL" {
			columns["VARCHAR(40) COLLATE utf8mb4_0900_ai_ci"], columns["VARCHAR(40) COLLATE utf8mb4_0900_bin"] = []string{"plain List"}, texts
		} else {
			columns["VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci"], columns["UUID"] = []string{"plain List"}, texts // a notice
			columns["VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"] = texts
		}
		t.Run(s.name, func(t *testing.T) {
			db := s.open(t, nil)
			losing := 0
			for column, clean := range columns {
				makeKeyed(t, db, column, 4)
				for name, rule := range rules {
					k := newKeyed(t, db, rule)
					for _, key := range awkward() {
						k.write(t, key)
					}
					found, lost := k.faults(t), k.lost(t, awkward())
					if len(lost) > 0 {
						losing++
					}
					if len(found) == 0 && len(lost) > 0 && column != "BINARY(60)" && column != "UUID" {
						t.Errorf("%s under %s loses, and nobody says so: %q", column, name, lost)
					}
					if slices.Contains(clean, name) != (len(found) == 0) {
						t.Errorf("%s under %s: %q", column, name, found)
					}
				}
			}
			if losing == 0 {
				t.Error("nothing was lost anywhere: the test finds nothing")
			}
			t.Logf("%d columns under %d rules: rows are lost in %d cases, each of which is found", len(columns), len(rules), losing)
		})
	}
}

// near are times around the borders of a rule, to all units.
func near(rule sharding.IntervalRule, n int) (keys []any) {
	from, to := rule.Bounds()
	hours := int(to.Sub(from).Hours())
	for range n {
		unit := []time.Duration{time.Nanosecond, time.Microsecond, 100 * time.Microsecond, time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Minute}[rand.IntN(7)]
		at := from.Add(time.Duration(rand.IntN(hours+1)) * time.Hour).Add(time.Duration(rand.IntN(21)-10) * unit)
		keys = append(keys, at.In([]*time.Location{time.UTC, time.FixedZone("", 3600*5+1800)}[rand.IntN(2)]))
	}
	return keys
}

// Times of the night in which summer ends, by the hour: written and read by drivers and
// sessions of several zones, kept by several columns, rounded and cut.
func TestNoTimeIsLostUnlessItsColumnWasFound(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]string{"MySQL": "'STRICT_TRANS_TABLES,TIME_TRUNCATE_FRACTIONAL'", "MariaDB": "'STRICT_TRANS_TABLES,TIME_ROUND_FRACTIONAL'"}
	for _, s := range keyServers(t) {
		t.Run(s.name, func(t *testing.T) {
			rows, losing := 0, 0
			for column, unit := range map[string]time.Duration{
				"DATETIME": time.Second, "DATETIME(3)": time.Millisecond, "DATETIME(6)": time.Microsecond, "TIMESTAMP(3)": time.Millisecond, "DATE": 24 * time.Hour,
			} {
				makeKeyed(t, s.open(t, nil), column, 7)
				for _, mode := range []string{"'STRICT_TRANS_TABLES'", modes[s.name]} {
					for loc, zone := range map[string]*time.Location{"UTC": time.UTC, "Europe/Berlin": berlin} {
						db := s.open(t, url.Values{"parseTime": {"true"}, "loc": {loc}, "time_zone": {"'+00:00'"}, "sql_mode": {mode}})
						for name, rule := range rulesOfTimes(unit, zone, berlin) {
							k := newKeyed(t, db, rule)
							for _, key := range near(rule, 60) {
								if k.write(t, key) {
									rows++
								}
							}
							found, lost := k.faults(t), k.misplaced(t)
							if len(lost) > 0 {
								losing++
							}
							if len(found) == 0 && len(lost) > 0 || (name == "right" || name == "too coarse") != (len(found) == 0) {
								t.Errorf("%s, loc %s, %s, %s: found %q, lost %q", column, loc, mode, name, found, lost)
							}
						}
					}
				}
			}
			if losing == 0 {
				t.Error("nothing was lost anywhere: the test finds nothing")
			}
			t.Logf("%d rows; some are lost in %d cases, each of which is found", rows, losing)
		})
	}
}

// rulesOfTimes cut the night in which summer ends into hours, or its days, for a DATE.
// One of them assumes the column's real precision and zone, one refuses more times than necessary, and two
// lose rows.
func rulesOfTimes(unit time.Duration, zone, berlin *time.Location) map[string]sharding.IntervalRule {
	start := time.Date(2026, 10, 25, 0, 0, 0, 0, berlin)
	to, every, other := start.Add(6*time.Hour), time.Hour, berlin
	if unit > every {
		to, every = start.AddDate(0, 0, 4), unit
	}
	if zone == berlin {
		other = time.UTC
	}
	right := sharding.Interval(start, to, every).WithPrecision(unit).WithZone(zone)
	return map[string]sharding.IntervalRule{"right": right, "too coarse": right.WithPrecision(max(unit, 10*time.Second)), "too fine": right.WithPrecision(time.Nanosecond), "of another zone": right.WithZone(other)}
}

// misplaced are the rows that the router looks for elsewhere than they are.
func (k keyed) misplaced(t *testing.T) (lost []string) {
	t.Helper()
	for _, table := range k.tables() {
		lost = append(lost, k.misplacedOf(t, table)...)
	}
	return lost
}

func (k keyed) misplacedOf(t *testing.T, table string) (lost []string) {
	t.Helper()
	rows, err := k.db.QueryContext(t.Context(), "SELECT k FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var at time.Time
		if err := rows.Scan(&at); err != nil {
			t.Fatal(err)
		}
		if target, err := k.router.Target("t", at); err != nil || target.Table != table {
			lost = append(lost, fmt.Sprintf("%v of %s: %v, %v", at, table, target, err))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lost
}

func TestTheConnectionsOwnMistakesAboutTimesAreFound(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rule := sharding.Interval(start, start.AddDate(1, 0, 0), 24*365*time.Hour)
	for _, s := range keyServers(t) {
		makeKeyed(t, s.open(t, nil), "TIMESTAMP", rule.Slots())
		for want, settings := range map[string]url.Values{
			"":                   {"parseTime": {"true"}},
			"parseTime=true":     {},
			"STRICT_TRANS_TABLE": {"parseTime": {"true"}, "sql_mode": {"''"}},
		} {
			k := newKeyed(t, s.open(t, settings), rule)
			if found := k.faultTexts(t); (want == "") != (found == "") || !strings.Contains(found, want) {
				t.Errorf("%s, %q: %q", s.name, want, found)
			}
		}
	}
}

// faultTexts are messages and fixes.
func (k keyed) faultTexts(t *testing.T) string {
	t.Helper()
	table, _ := k.router.Table("t")
	found, err := keycolumn.Inspect(t.Context(), k.db, dialect.MySQL{}, &table, "t_0")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range found {
		b.WriteString(f.Message + "; " + f.Fix + "\n")
	}
	return b.String()
}

// visitor is an account whose keys come from elsewhere.
type visitor struct {
	ID     int64 `gorm:"primaryKey;autoIncrement:false"`
	Tenant string
	Code   string
}

func (visitor) TableName() string { return "accounts" }

func TestCheckRefusesTheKeyColumnOfAModelWithoutAGenerator(t *testing.T) {
	db, router := accounts(t, server.RunMariaDB(t).Open)
	for _, target := range router.Targets("accounts") {
		database.Exec(t, router.DB(target.DB), "CREATE TABLE "+target.Table+" (id BIGINT PRIMARY KEY, tenant VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, code INT)")
	}
	err := gormplugin.Check(db, &visitor{})
	if errors.Is(err, gormplugin.ErrUnmanaged) || !errors.Is(err, gormplugin.ErrCollation) || !errors.Is(err, gormplugin.ErrKeyColumn) {
		t.Error(err)
	}
}

// country is a model whose key is a list of texts, as many databases have it.
type country struct {
	ID   int64 `gorm:"primaryKey"`
	Code string
}

func (country) TableName() string { return "countries" }

func TestCheckAllowsAListOfTextsThatTheServersOwnCollationTellsApart(t *testing.T) {
	for _, s := range keyServers(t) {
		db := s.open(t, nil)
		for _, column := range []string{"CHAR(2)", "VARCHAR(9)", "ENUM('de', 'fr')"} {
			database.Exec(t, db, "DROP TABLE IF EXISTS countries_0, countries_1")
			for i := range 2 {
				database.Exec(t, db, fmt.Sprintf("CREATE TABLE countries_%d (id BIGINT PRIMARY KEY, code %s NOT NULL)", i, column))
			}
			for want, slots := range map[error]map[string]sharding.Slot{nil: {"de": 0, "fr": 1}, gormplugin.ErrCollation: {"de": 0, "DE": 1}} {
				m, err := sharding.Spread([]string{"a"}, 2, "countries_%d")
				if err != nil {
					t.Fatal(err)
				}
				router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "countries", Key: "code", Rule: sharding.List(slots), Map: m})
				if err != nil {
					t.Fatal(err)
				}
				orm := database.OpenGORM(t, db, true)
				if err := orm.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Auto: true, Router: router})); err != nil {
					t.Fatal(err)
				}
				if err := gormplugin.Check(orm, &country{}); !errors.Is(err, want) {
					t.Errorf("%s, %s, %v: %v", s.name, column, slots, err)
				}
			}
		}
	}
}

// Sharding is not for PostgreSQL, but doctor looks at its tables, too.
func TestDoctorChecksTheKeyColumnsOfPostgreSQL(t *testing.T) {
	db := server.RunPostgres(t).Open(t, "keys")
	database.Exec(t, db, "CREATE EXTENSION IF NOT EXISTS citext")
	database.Exec(t, db, "CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
	database.Exec(t, db, "CREATE DOMAIN moment AS timestamptz(3)")
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	times := sharding.Interval(start, start.AddDate(1, 0, 0), 24*time.Hour)
	plain, apart := sharding.List(map[string]sharding.Slot{"de": 0, "fr": 1}), sharding.List(map[string]sharding.Slot{"de": 0, "DE": 1})
	for _, c := range []struct {
		column string
		rule   sharding.Rule
		want   string
	}{
		{"text", sharding.HashText(4), ""}, {"varchar(9)", sharding.HashText(4), ""}, {"bytea", sharding.HashText(4), ""},
		{"char(9)", plain, ""}, {"citext", plain, ""}, {"citext", apart, "error collation"}, {"text COLLATE folding", plain, ""}, {"text COLLATE folding", apart, "error collation"},
		{"text", apart, ""}, {"char(9)", sharding.HashText(4), "warning collation"}, {"citext", sharding.HashText(4), "warning collation"}, {"text COLLATE folding", sharding.HashText(4), "warning collation"},
		{"bigint", sharding.HashText(4), "error key_column"}, {"uuid", sharding.HashText(4), "info key_column"},
		{"bigint", sharding.Low(2), ""}, {"numeric(20)", sharding.Low(2), ""}, {"numeric", sharding.Low(2), "error key_column"}, {"numeric(9,2)", sharding.Low(2), "error key_column"},
		{"double precision", sharding.Low(2), "error key_column"}, {"text", sharding.Low(2), ""},
		{"timestamptz", times.WithPrecision(time.Microsecond), ""}, {"timestamptz(3)", times.WithPrecision(time.Millisecond), ""}, {"moment", times.WithPrecision(time.Millisecond), ""},
		{"timestamptz", times, "info key_column"}, {"timestamptz(0)", times.WithPrecision(time.Millisecond), "error key_column"},
		{"timestamp", times.WithPrecision(time.Microsecond), "warning key_column"}, {"date", times.WithPrecision(24 * time.Hour), "warning key_column"}, {"text", times, "error key_column"},
	} {
		database.Exec(t, db, "DROP TABLE IF EXISTS t_0")
		database.Exec(t, db, "CREATE TABLE t_0 (id bigint PRIMARY KEY, k "+c.column+")")
		target := sharding.Target{DB: "a", Table: "t_0"}
		m, err := sharding.MapOf(slices.Repeat([]sharding.Target{target}, c.rule.Slots())...)
		if err != nil {
			t.Fatal(err)
		}
		router, err := sharding.New(sharding.DBs{"a": db}, sharding.Table{Name: "t", Key: "k", Rule: c.rule, Map: m})
		if err != nil {
			t.Fatal(err)
		}
		d, err := schema.Doctor(t.Context(), router, schema.DoctorConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, f := range d.Findings {
			if f.Code == schema.KeyColumn || f.Code == schema.Collation {
				found = append(found, string(f.Severity)+" "+string(f.Code))
			}
			if f.Code == schema.Collation && !strings.Contains(f.Fix, "text or varchar of PostgreSQL") {
				t.Errorf("%s under %s: the fix is %q", c.column, sharding.Describe(c.rule).Kind, f.Fix)
			}
		}
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s under %s: %q, want %q (%v)", c.column, sharding.Describe(c.rule).Kind, got, c.want, d.Findings)
		}
	}
}
