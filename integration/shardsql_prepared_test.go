// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// preparedShop is the tables of these tests in one database, or behind a routed one. Each
// pool has one connection, whose session counts what is prepared.
type preparedShop struct {
	db    *sql.DB
	pools []*sql.DB
}

func preparedShops(t *testing.T) (plain, routed preparedShop) {
	t.Helper()
	m := server.ShareMariaDB(t)
	open := func(name string) *sql.DB {
		db := m.Open(t, name)
		db.SetMaxOpenConns(1)
		return db
	}
	one := open("plain")
	database.Exec(t, one, "CREATE TABLE routed_orders (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(50) NOT NULL)")
	database.Exec(t, one, "CREATE TABLE routed_coupons (code VARCHAR(20) PRIMARY KEY, used BIGINT NOT NULL)")
	home, shard := open("home"), open("shard")
	database.Exec(t, home, "CREATE TABLE routed_coupons (code VARCHAR(20) PRIMARY KEY, used BIGINT NOT NULL)")
	tables, err := sharding.Spread([]string{"a"}, 2, "routed_orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range tables.Targets() {
		database.Exec(t, shard, "CREATE TABLE "+at.Table+" (id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(50) NOT NULL)")
	}
	router, err := sharding.New(sharding.DBs{"a": shard}, sharding.Table{Name: "routed_orders", Key: "user_id", Rule: sharding.Mod(2), Map: tables})
	if err != nil {
		t.Fatal(err)
	}
	db := shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	t.Cleanup(func() { _ = db.Close() })
	for _, text := range []string{"SELECT * FROM routed_orders WHERE user_id = 1", "SELECT * FROM routed_coupons"} {
		database.Exec(t, db, text) // what has to be known is asked for now
	}
	return preparedShop{one, []*sql.DB{one}}, preparedShop{db, []*sql.DB{home, shard}}
}

// counts are the numbers of statements that the sessions have prepared and closed.
func (s preparedShop) counts(t *testing.T) (prepared, closed int) {
	t.Helper()
	for _, db := range s.pools {
		for name, to := range map[string]*int{"Com_stmt_prepare": &prepared, "Com_stmt_close": &closed} {
			var n int
			if err := db.QueryRow("SHOW SESSION STATUS LIKE '"+name+"'").Scan(&name, &n); err != nil {
				t.Fatal(err)
			}
			*to += n
		}
	}
	return prepared, closed
}

// The servers prepare a program's statement no more often than without
// routing, and close it when the program closes it.
func TestPreparingOnARoutedDatabaseCostsNoMore(t *testing.T) {
	plain, routed := preparedShops(t)
	const insert, find, coupon = "INSERT INTO routed_orders (id, user_id, note) VALUES (?, ?, 'x')", "SELECT COUNT(*) FROM routed_orders WHERE user_id = ?", "SELECT COUNT(*) FROM routed_coupons WHERE used = ?"
	id := 0
	loop := func(st *sql.Stmt, execs bool) error {
		var err error
		for range 10 {
			id++
			var n int
			if execs {
				_, failed := st.Exec(id, 1)
				err = errors.Join(err, failed)
			} else {
				err = errors.Join(err, st.QueryRow(1).Scan(&n))
			}
		}
		return errors.Join(err, st.Close())
	}
	on := func(text string, execs bool, open func(ctx context.Context, db *sql.DB) (func(string) (*sql.Stmt, error), func() error, error)) func(*testing.T, *sql.DB) error {
		return func(t *testing.T, db *sql.DB) error {
			prepare, end, err := open(t.Context(), db)
			if err != nil {
				return err
			}
			st, err := prepare(text)
			if err == nil {
				err = loop(st, execs)
			}
			return errors.Join(err, end())
		}
	}
	tx := func(ctx context.Context, db *sql.DB) (func(string) (*sql.Stmt, error), func() error, error) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return nil, nil, err
		}
		return tx.Prepare, tx.Commit, nil
	}
	conn := func(ctx context.Context, db *sql.DB) (func(string) (*sql.Stmt, error), func() error, error) {
		c, err := db.Conn(ctx)
		if err != nil {
			return nil, nil, err
		}
		return func(text string) (*sql.Stmt, error) { return c.PrepareContext(ctx, text) }, c.Close, nil
	}
	pool := func(_ context.Context, db *sql.DB) (func(string) (*sql.Stmt, error), func() error, error) {
		return db.Prepare, func() error { return nil }, nil
	}
	for name, run := range map[string]func(*testing.T, *sql.DB) error{
		"a write in a transaction":        on(insert, true, tx),
		"a query in a transaction":        on(find, false, tx),
		"a query of home, in one":         on(coupon, false, tx),
		"a query on a connection":         on(find, false, conn),
		"a query of home on a connection": on(coupon, false, conn),
		"a query":                         on(find, false, pool),
		"a query of home":                 on(coupon, false, pool),
		"a write":                         on(insert, true, pool),
	} {
		t.Run(name, func(t *testing.T) {
			var prepared, closed [2]int
			for i, shop := range []preparedShop{plain, routed} {
				p, c := shop.counts(t)
				if err := run(t, shop.db); err != nil {
					t.Fatal(err)
				}
				prepared[i], closed[i] = shop.counts(t)
				prepared[i], closed[i] = prepared[i]-p, closed[i]-c
			}
			t.Logf("prepared %v, closed %v", prepared, closed)
			if prepared[1] > prepared[0] || closed[1] != prepared[1] {
				t.Errorf("%d are prepared, and %d closed; without routing %d", prepared[1], closed[1], prepared[0])
			}
		})
	}
}

// GORM keeps the statements that it prepares until it is closed.
func TestGORMThatPreparesPreparesNoMoreOnARoutedDatabase(t *testing.T) {
	plain, routed := preparedShops(t)
	work := func(db *gorm.DB, id int64) error {
		var orders []routedOrder
		return errors.Join(
			db.Create(&routedOrder{ID: id, UserID: 1, Note: "new"}).Error,
			db.Where("user_id = ?", 1).Find(&orders).Error,
			db.Model(&routedOrder{ID: id, UserID: 1}).Update("note", "paid").Error,
		)
	}
	home := func(db *gorm.DB, id int64) error {
		var coupons []routedCoupon
		return errors.Join(
			db.Where("used = ?", 1).Find(&coupons).Error,
			db.Create(&routedCoupon{Code: strconv.FormatInt(id, 10), Used: id}).Error,
			db.Model(&routedCoupon{Code: strconv.FormatInt(id, 10)}).Update("used", 2).Error,
		)
	}
	for name, run := range map[string]func(*gorm.DB, int64) error{
		"each statement by itself":         work,
		"each statement of home by itself": home,
		"in transactions at home": func(db *gorm.DB, id int64) error {
			return db.Transaction(func(tx *gorm.DB) error { return home(tx, id+100) })
		},
		"in transactions": func(db *gorm.DB, id int64) error {
			return db.Transaction(func(tx *gorm.DB) error { return work(tx, id+100) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var prepared [2]int
			for i, shop := range []preparedShop{plain, routed} {
				db, err := gorm.Open(mysql.New(mysql.Config{Conn: shop.db, SkipInitializeWithVersion: true}), &gorm.Config{PrepareStmt: true, Logger: logger.Discard})
				if err != nil {
					t.Fatal(err)
				}
				before, _ := shop.counts(t)
				for id := range int64(10) {
					if err := run(db, id); err != nil {
						t.Fatal(err)
					}
				}
				prepared[i], _ = shop.counts(t)
				prepared[i] -= before
				if keeper, ok := db.ConnPool.(*gorm.PreparedStmtDB); ok {
					keeper.Close()
				}
			}
			if t.Logf("prepared %v", prepared); prepared[1] > prepared[0] {
				t.Errorf("%d are prepared, without routing %d", prepared[1], prepared[0])
			}
		})
	}
}

// MySQL and MariaDB print a FLOAT with fewer digits than a prepared statement returns. A statement with arguments
// is prepared by the driver, even if its arguments are not sent to the shards.
func TestAFloatHasTheDigitsThatAPreparedStatementReturns(t *testing.T) {
	maria := server.ShareMariaDB(t)
	kinds := writing(t)
	kinds["MariaDB, arguments in the text"] = func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		maria.Open(tb, name+"_text") // creates it
		return opened(tb, "mysql", maria.DSN(name+"_text")+"?interpolateParams=true")
	}
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			open = open.of("floats")
			dbs, whole := sharding.DBs{"a": open(t, "a")}, open(t, "whole")
			m, err := sharding.Spread([]string{"a"}, 2, "samples_%d")
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range m.Targets() {
				database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+" (id BIGINT PRIMARY KEY, part FLOAT)")
			}
			router, err := sharding.New(dbs, sharding.Table{Name: "samples", Key: "id", Rule: sharding.Mod(2), Map: m})
			if err != nil {
				t.Fatal(err)
			}
			routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: open(t, "home")})
			t.Cleanup(func() { _ = routed.Close() })
			database.Exec(t, whole, "CREATE TABLE samples (id BIGINT PRIMARY KEY, part FLOAT)")
			for _, db := range []*sql.DB{whole, routed} {
				database.Exec(t, db, "INSERT INTO samples (id, part) VALUES (1, 16777216), (2, 0.1)")
			}
			for text, args := range map[string][]any{
				"SELECT part FROM samples ORDER BY part LIMIT ?":                                    {2},
				"SELECT MAX(part) FROM samples HAVING COUNT(*) > ?":                                 {1},
				"SELECT part FROM samples WHERE id > (SELECT MIN(id) - ? FROM samples) ORDER BY id": {1},
				"SELECT part FROM samples WHERE id >= (SELECT MIN(id) FROM samples) ORDER BY id":    nil,
				"SELECT part FROM samples ORDER BY id":                                              nil,
				"SELECT part FROM samples WHERE id = 1":                                             nil,
				"SELECT part FROM samples WHERE id = (SELECT MIN(id) + ? FROM samples)":             {0},
			} {
				want := floatsOf(t, whole, text, args)
				if got := floatsOf(t, routed, text, args); !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", text, got, want)
				}
			}
		})
	}
}

// floatsOf returns the first column of a query that is executed directly, if it has arguments, and as a prepared
// statement, also in a transaction.
func floatsOf(t *testing.T, db *sql.DB, text string, args []any) (all []float64) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	database.Exec(t, tx, "UPDATE samples SET part = part WHERE id = 1") // it begins
	read := func(rows *sql.Rows, err error) {
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var one float64
			if err := rows.Scan(&one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if args != nil {
		read(db.QueryContext(t.Context(), text, args...)) //nolint:rowserrcheck // read checks it
	}
	st, err := db.PrepareContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	read(st.QueryContext(t.Context(), args...))                              //nolint:rowserrcheck // as above
	read(tx.StmtContext(t.Context(), st).QueryContext(t.Context(), args...)) //nolint:rowserrcheck,sqlclosecheck // the outer statement is closed
	return all
}

// A driver that writes arguments into a text returns other types from it than from a prepared statement, and sends
// a []byte that compares byte by byte.
func TestAPreparedStatementHasTheValuesOfOneTableWhateverTheDriverDoesWithATextsArguments(t *testing.T) {
	maria, of := server.ShareMariaDB(t), server.ShareMySQL(t)
	for name, open := range map[string]namedDatabase{
		"MariaDB": maria.Open, "MySQL": of.Open,
		"MariaDB, arguments in the text": writingArguments(maria.Open, maria.DSN), "MySQL, arguments in the text": writingArguments(of.Open, of.DSN),
	} {
		t.Run(name, func(t *testing.T) {
			routed, whole := countedTwins(t, open.of("values"))
			for text, args := range map[string][]any{
				"SELECT id, big FROM counted ORDER BY id LIMIT ?":                                                                                                                       {9},
				"SELECT id, big FROM counted ORDER BY id":                                                                                                                               nil,
				"SELECT MAX(big), BIT_OR(big), COUNT(*) FROM counted GROUP BY part ORDER BY 1":                                                                                          nil,
				"SELECT id, big FROM counted WHERE id IN (?, ?, ?) ORDER BY big DESC":                                                                                                   {1, 2, 4},
				"SELECT id & 3 AS x, ? AS y FROM counted ORDER BY 1":                                                                                                                    {5},
				"SELECT MAX(big) - MIN(id), MIN(small) + COUNT(*), MIN(big) + 0, ROUND(MAX(small)) FROM counted":                                                                        nil,
				"SELECT MAX(big) - MIN(small) AS d FROM counted HAVING d > 9223372036854775807 AND COUNT(*) > ?":                                                                        {1},
				"SELECT part, STDDEV(id), VAR_SAMP(id * 3) FROM counted GROUP BY part ORDER BY part LIMIT ?":                                                                            {9},
				"SELECT part, AVG(fixed) FROM measured GROUP BY part ORDER BY part LIMIT ?":                                                                                             {9},
				"SELECT fixed, big FROM measured ORDER BY id LIMIT ?":                                                                                                                   {9},
				"SELECT id, big FROM counted WHERE word IN (SELECT word FROM counted_home WHERE id < 3) ORDER BY id":                                                                    nil,
				"SELECT MAX(big) FROM counted WHERE word = (SELECT word FROM counted_home WHERE id = 2)":                                                                                nil,
				"SELECT id, big FROM counted WHERE id = 2 AND word = (SELECT word FROM counted_home WHERE id = 2)":                                                                      nil,
				"SELECT part % 2 AS p, LEAD(MAX(small)) OVER (ORDER BY part % 2) AS n, 1 + LAG(MIN(small)) OVER (ORDER BY part % 2) AS m FROM counted GROUP BY part % 2 ORDER BY p":     nil,
				"SELECT part % 2, LAG(SUM((SELECT COUNT(*) FROM counted x WHERE x.part = counted.part))) OVER (ORDER BY part % 2) - COUNT(*) FROM counted GROUP BY part % 2 ORDER BY 1": nil,
				"SELECT part % 2, ? + LAG(COUNT(*)) OVER (ORDER BY part % 2), LEAD(COUNT(*)) OVER (ORDER BY part % 2) FROM counted GROUP BY part % 2 ORDER BY 1":                        {5},
				"SELECT ?, COUNT(*) FROM counted WHERE id > 0":                                                                                                                          {5},
				"SELECT id, big FROM counted WHERE word = ? ORDER BY id":                                                                                                                {[]byte("A")},
				"SELECT id, big FROM counted WHERE part = ? AND word = ?":                                                                                                               {1, []byte("A")},
				"SELECT id, big FROM counted WHERE big > (SELECT MIN(big) FROM counted) ORDER BY id LIMIT ?":                                                                            {9},
				"SELECT big, word FROM counted_home WHERE word = ?":                                                                                                                     {[]byte("A")},
			} {
				for _, how := range []string{"direct", "prepared", "prepared in a transaction"} {
					want, got := valuesOf(t, whole, how, text, args), valuesOf(t, routed, how, text, args)
					if got != want {
						t.Errorf("%s, %s: %s\nwant %s", how, text, got, want)
					}
				}
			}
			for _, text := range []string{"UPDATE counted SET big = 1 WHERE word = ? AND id > 0", "DELETE FROM counted WHERE word = ? AND id IN (1, 2, 3)"} {
				if want, got := affectedBy(t, whole, text, []byte("A")), affectedBy(t, routed, text, []byte("A")); got != want {
					t.Errorf("%s: %d rows, want %d", text, got, want)
				}
			}
		})
	}
}

// MariaDB returns the rows of a write to several shards as of one table, also of a shard that gets none of the arguments.
func TestAWriteOfSeveralShardsReturnsTheValuesOfOneTableWhateverTheDriverDoesWithATextsArguments(t *testing.T) {
	maria := server.ShareMariaDB(t)
	for name, open := range map[string]namedDatabase{"MariaDB": maria.Open, "MariaDB, arguments in the text": writingArguments(maria.Open, maria.DSN)} {
		t.Run(name, func(t *testing.T) {
			routed, whole := countedTwins(t, open.of("returned"))
			for _, write := range []struct {
				text string
				args []any
			}{
				{"INSERT INTO counted (id, part, big, small) VALUES (11, 1, 18446744073709551615, 7), (12, 2, ?, 8) RETURNING id, big, small", []any{5}},
				{"INSERT INTO counted (id, part, big) VALUES (13, 1, 18446744073709551615), (14, 2, 5) RETURNING big", nil},
				{"INSERT INTO measured (id, part, fixed) VALUES (11, 1, 1234567.125), (12, 2, 0.1) RETURNING fixed", nil},
				{"DELETE FROM counted WHERE part IN (1, 2) AND id > 10 RETURNING big", nil},
				{"DELETE FROM measured WHERE id = 11 AND part IN (1, 2) RETURNING big, fixed", nil},
				{"INSERT INTO coins (id, big) VALUES (1, 5) RETURNING big", nil},
			} {
				for _, how := range []string{"direct", "prepared", "prepared in a transaction"} {
					want, got := valuesOf(t, whole, how, write.text, write.args), valuesOf(t, routed, how, write.text, write.args)
					if got != want {
						t.Errorf("%s, %s: %s\nwant %s", how, write.text, got, want)
					}
					for _, db := range []*sql.DB{whole, routed} { // again as before
						for _, text := range []string{"DELETE FROM counted WHERE part IN (1, 2) AND id > 10", "DELETE FROM measured WHERE part IN (1, 2) AND id > 10", "DELETE FROM coins WHERE id = 1"} {
							database.Exec(t, db, text)
						}
						if strings.HasPrefix(write.text, "DELETE") {
							database.Exec(t, db, "INSERT INTO counted (id, part, big) VALUES (11, 1, 18446744073709551615), (12, 2, 5)")
							database.Exec(t, db, "INSERT INTO measured (id, part, big, fixed) VALUES (11, 1, 7, 1234567.125)")
						}
					}
				}
			}
		})
	}
}

// MySQL, MariaDB and SQLite name a column without an alias by its text.
func TestAColumnOfASubqueryHasTheNameThatOneTableGivesIt(t *testing.T) {
	of := server.ShareMySQL(t)
	for name, open := range map[string]namedDatabase{"MariaDB": server.ShareMariaDB(t).Open, "MySQL": of.Open, "MySQL, arguments in the text": writingArguments(of.Open, of.DSN)} {
		t.Run(name, func(t *testing.T) {
			routed, whole := countedTwins(t, open.of("labels"))
			for text, args := range map[string][]any{
				"SELECT EXISTS (SELECT 1 FROM counted WHERE part = ?)": {1},
				"SELECT id, (SELECT COUNT(*) FROM counted WHERE part = 1), -(SELECT 1 FROM counted c WHERE c.part = 1 LIMIT 1) FROM counted WHERE part = 1 ORDER BY 1": nil,
				"SELECT EXISTS(SELECT 1 FROM counted WHERE word = 'x``\"y')":                                                                                           nil,
				"(SELECT (SELECT MAX(id) FROM counted WHERE part = 1)) UNION ALL SELECT 1 FROM counted WHERE part = 1":                                                 nil,
				"SELECT (SELECT COUNT(*) FROM counted x WHERE x.part = counted.part) + 1, id FROM counted ORDER BY id":                                                 nil,
				"SELECT  EXISTS ( SELECT  1 /* any */ FROM counted )":                                                                                                  nil,
			} {
				for _, how := range []string{"direct", "prepared", "prepared in a transaction"} {
					want, got := valuesOf(t, whole, how, text, args), valuesOf(t, routed, how, text, args)
					if got != want {
						t.Errorf("%s, %s: %s\nwant %s", how, text, got, want)
					}
				}
			}
		})
	}
}

// affectedBy returns the number of rows that a prepared statement has affected.
func affectedBy(t *testing.T, db *sql.DB, text string, args ...any) int64 {
	t.Helper()
	st, err := db.PrepareContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	r, err := st.ExecContext(sharding.AllShards(t.Context()), args...)
	if err != nil {
		t.Fatal(err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// writingArguments opens databases whose driver writes arguments into the text.
func writingArguments(made namedDatabase, dsn func(string) string) namedDatabase {
	return func(tb testing.TB, name string) *sql.DB {
		tb.Helper()
		made(tb, name+"_text")
		return opened(tb, "mysql", dsn(name+"_text")+"?interpolateParams=true")
	}
}

// countedTwins have numbers that are larger than an int64, in shards and in one table.
func countedTwins(t *testing.T, open namedDatabase) (routed, whole *sql.DB) {
	t.Helper()
	const columns = " (id BIGINT PRIMARY KEY, part BIGINT NOT NULL, big BIGINT UNSIGNED, word VARCHAR(10) COLLATE utf8mb4_general_ci, small TINYINT UNSIGNED DEFAULT 3"
	all := map[string]string{"counted": columns + ")", "counted_home": columns + ")", "measured": columns + ", fixed DOUBLE(10,3) DEFAULT 0.1)"}
	dbs, home, whole := sharding.DBs{"a": open(t, "a"), "b": open(t, "b")}, open(t, "home"), open(t, "whole")
	options := []sharding.Option{sharding.Transactions(sharding.BestEffort), sharding.Broadcast("coins")}
	for _, db := range []*sql.DB{dbs["a"], dbs["b"], home, whole} {
		database.Exec(t, db, "CREATE TABLE coins (id BIGINT PRIMARY KEY, big BIGINT UNSIGNED)")
	}
	for _, name := range []string{"counted", "measured"} {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range m.Targets() {
			database.Exec(t, dbs[at.DB], "CREATE TABLE "+at.Table+all[name])
		}
		options = append(options, sharding.Table{Name: name, Key: "part", Rule: sharding.Mod(4), Map: m})
	}
	router, err := sharding.New(dbs, options...)
	if err != nil {
		t.Fatal(err)
	}
	routed = shardsql.OpenDB(shardsql.Config{Router: router, Home: home})
	t.Cleanup(func() { _ = routed.Close() })
	database.Exec(t, home, "CREATE TABLE counted_home"+all["counted_home"])
	for name, columns := range all {
		database.Exec(t, whole, "CREATE TABLE "+name+columns)
		for _, db := range []*sql.DB{routed, whole} {
			database.Exec(t, db, "INSERT INTO "+name+" (id, part, big, word) VALUES (1, 0, 5, 'a'), (2, 1, 18446744073709551615, 'A'), (3, 2, NULL, 'b'), (4, 0, 9223372036854775807, 'a'), (5, 1, 9223372036854775808, NULL), (7, 0, 0, 'b')")
		}
	}
	return routed, whole
}

// valuesOf returns the names of the columns and the values of a query with their types.
func valuesOf(t *testing.T, db *sql.DB, how, text string, args []any) string {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	prepare := db.PrepareContext
	if how == "prepared in a transaction" {
		prepare = tx.PrepareContext
	}
	ask := func() (*sql.Rows, error) { return db.QueryContext(t.Context(), text, args...) }
	if how != "direct" {
		st, err := prepare(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		ask = func() (*sql.Rows, error) { return st.QueryContext(t.Context(), args...) }
	}
	rows, err := ask()
	if err != nil {
		return err.Error()
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	fmt.Fprintf(&all, "%q", columns)
	for rows.Next() {
		row := make([]any, len(columns))
		to := make([]any, len(columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		for _, v := range row {
			fmt.Fprintf(&all, " %T %v", v, v)
		}
		all.WriteString(";")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
