// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// sakilaSQL is the part of MySQL's example database Sakila that rents films, with its
// types and all of its keys.
//
//nolint:dupword // columns of one value each
const sakilaSQL = `
CREATE TABLE language (language_id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name CHAR(20) NOT NULL, last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE actor (actor_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, last_name VARCHAR(45) NOT NULL);
CREATE TABLE category (category_id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(25) NOT NULL);
CREATE TABLE address (address_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, address VARCHAR(50) NOT NULL, phone VARCHAR(20) NOT NULL);
CREATE TABLE staff (staff_id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, address_id SMALLINT UNSIGNED NOT NULL, store_id TINYINT UNSIGNED NOT NULL, username VARCHAR(16) NOT NULL,
	KEY idx_fk_store_id (store_id), CONSTRAINT fk_staff_address FOREIGN KEY (address_id) REFERENCES address (address_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE store (store_id TINYINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, manager_staff_id TINYINT UNSIGNED NOT NULL, address_id SMALLINT UNSIGNED NOT NULL,
	UNIQUE KEY idx_unique_manager (manager_staff_id),
	CONSTRAINT fk_store_staff FOREIGN KEY (manager_staff_id) REFERENCES staff (staff_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_store_address FOREIGN KEY (address_id) REFERENCES address (address_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE film (film_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(255) NOT NULL, description TEXT DEFAULT NULL, release_year YEAR DEFAULT NULL,
	language_id TINYINT UNSIGNED NOT NULL, original_language_id TINYINT UNSIGNED DEFAULT NULL, rental_duration TINYINT UNSIGNED NOT NULL DEFAULT 3, rental_rate DECIMAL(4,2) NOT NULL DEFAULT 4.99,
	rating ENUM('G','PG','PG-13','R','NC-17') DEFAULT 'G', special_features SET('Trailers','Commentaries','Deleted Scenes','Behind the Scenes') DEFAULT NULL,
	last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY idx_title (title),
	CONSTRAINT fk_film_language FOREIGN KEY (language_id) REFERENCES language (language_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_film_language_original FOREIGN KEY (original_language_id) REFERENCES language (language_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE film_text (film_id SMALLINT UNSIGNED NOT NULL PRIMARY KEY, title VARCHAR(255) NOT NULL, description TEXT, FULLTEXT KEY idx_title_description (title, description));
CREATE TABLE film_actor (actor_id SMALLINT UNSIGNED NOT NULL, film_id SMALLINT UNSIGNED NOT NULL, PRIMARY KEY (actor_id, film_id), KEY idx_fk_film_id (film_id),
	CONSTRAINT fk_film_actor_actor FOREIGN KEY (actor_id) REFERENCES actor (actor_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_film_actor_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE film_category (film_id SMALLINT UNSIGNED NOT NULL, category_id TINYINT UNSIGNED NOT NULL, PRIMARY KEY (film_id, category_id),
	CONSTRAINT fk_film_category_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_film_category_category FOREIGN KEY (category_id) REFERENCES category (category_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE inventory (inventory_id MEDIUMINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, film_id SMALLINT UNSIGNED NOT NULL, store_id TINYINT UNSIGNED NOT NULL,
	last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY idx_store_id_film_id (store_id, film_id),
	CONSTRAINT fk_inventory_store FOREIGN KEY (store_id) REFERENCES store (store_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_inventory_film FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE customer (customer_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, store_id TINYINT UNSIGNED NOT NULL, last_name VARCHAR(45) NOT NULL, address_id SMALLINT UNSIGNED NOT NULL,
	active BOOLEAN NOT NULL DEFAULT TRUE, create_date DATETIME NOT NULL, last_update TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY idx_last_name (last_name),
	CONSTRAINT fk_customer_address FOREIGN KEY (address_id) REFERENCES address (address_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_customer_store FOREIGN KEY (store_id) REFERENCES store (store_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE rental (rental_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, rental_date DATETIME NOT NULL, inventory_id MEDIUMINT UNSIGNED NOT NULL, customer_id SMALLINT UNSIGNED NOT NULL,
	return_date DATETIME DEFAULT NULL, staff_id TINYINT UNSIGNED NOT NULL, last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	UNIQUE KEY (rental_date, inventory_id, customer_id),
	CONSTRAINT fk_rental_staff FOREIGN KEY (staff_id) REFERENCES staff (staff_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_rental_inventory FOREIGN KEY (inventory_id) REFERENCES inventory (inventory_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_rental_customer FOREIGN KEY (customer_id) REFERENCES customer (customer_id) ON DELETE RESTRICT ON UPDATE CASCADE);
CREATE TABLE payment (payment_id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id SMALLINT UNSIGNED NOT NULL, staff_id TINYINT UNSIGNED NOT NULL, rental_id INT DEFAULT NULL,
	amount DECIMAL(5,2) NOT NULL, payment_date DATETIME NOT NULL, last_update TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	CONSTRAINT fk_payment_rental FOREIGN KEY (rental_id) REFERENCES rental (rental_id) ON DELETE SET NULL ON UPDATE CASCADE,
	CONSTRAINT fk_payment_customer FOREIGN KEY (customer_id) REFERENCES customer (customer_id) ON DELETE RESTRICT ON UPDATE CASCADE,
	CONSTRAINT fk_payment_staff FOREIGN KEY (staff_id) REFERENCES staff (staff_id) ON DELETE RESTRICT ON UPDATE CASCADE);
INSERT INTO language (language_id, name) VALUES (1, 'English'), (2, 'Italian'), (9, 'Latin');
INSERT INTO actor VALUES (1, 'GUINESS'), (2, 'WAHLBERG');
INSERT INTO category VALUES (1, 'Action'), (2, 'Animation');
INSERT INTO address VALUES (1, '47 MySakila Drive', ''), (2, '28 MySQL Boulevard', '');
INSERT INTO staff VALUES (1, 1, 1, 'Mike'), (2, 2, 2, 'Jon');
INSERT INTO store VALUES (1, 1, 1), (2, 2, 2);
ALTER TABLE staff ADD CONSTRAINT fk_staff_store FOREIGN KEY (store_id) REFERENCES store (store_id) ON DELETE RESTRICT ON UPDATE CASCADE;
CREATE TABLE numbers (n INT PRIMARY KEY);
INSERT INTO numbers WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 300) SELECT n FROM r;
INSERT INTO film (film_id, title, description, release_year, language_id, rating, special_features) SELECT n, CONCAT('ACADEMY ', n), 'A Epic Drama', 2006, 1 + n % 2, 'PG', 'Trailers,Commentaries' FROM numbers;
INSERT INTO film_text SELECT film_id, title, description FROM film;
INSERT INTO film_actor SELECT 1 + n % 2, n FROM numbers;
INSERT INTO film_category SELECT n, 1 + n % 2 FROM numbers;
INSERT INTO inventory (inventory_id, film_id, store_id) SELECT n, n, 1 + n % 2 FROM numbers;
INSERT INTO customer (customer_id, store_id, last_name, address_id, create_date) SELECT n, 1 + n % 2, CONCAT('SMITH', n), 1 + n % 2, '2006-02-14 22:04:36' FROM numbers WHERE n <= 60;
INSERT INTO rental (rental_id, rental_date, inventory_id, customer_id, staff_id) SELECT n, '2005-05-24 22:53:30', n, 1 + n % 60, 1 + n % 2 FROM numbers;
INSERT INTO payment (payment_id, customer_id, staff_id, rental_id, amount, payment_date) SELECT n, 1 + n % 60, 1 + n % 2, n, 2.99, '2005-05-25 11:30:37' FROM numbers`

// sakila is that database, and the job that moves some of its tables.
type sakila struct {
	source *sql.DB
	shards sharding.DBs
	cfg    migrate.Config
}

func newSakila(t *testing.T, s database.DSNOpener, tables map[string]string, order ...string) *sakila {
	t.Helper()
	k := &sakila{source: s.Open(t, "sakila"), shards: sharding.DBs{"a": s.Open(t, "sakila_a"), "b": s.Open(t, "sakila_b")}}
	for statement := range strings.SplitSeq(sakilaSQL, ";\n") {
		database.Exec(t, k.source, statement)
	}
	k.cfg = migrate.Config{Name: "sakila", Source: k.source, Shards: k.shards, ChunkRows: 20}
	for _, name := range order {
		m, err := sharding.Spread([]string{"a", "b"}, 4, name+"_%d")
		if err != nil {
			t.Fatal(err)
		}
		k.cfg.Tables = append(k.cfg.Tables, migrate.Table{Table: sharding.Table{Name: name, Key: tables[name], Rule: sharding.Low(2), Map: m}})
	}
	return k
}

func (k *sakila) job(t *testing.T) *migrate.Job {
	t.Helper()
	j, err := migrate.New(k.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// finds fails unless Inspect reports all texts, and blocks if expected.
func (k *sakila) finds(t *testing.T, blocks bool, wanted ...string) {
	t.Helper()
	found, err := k.job(t).Inspect(t.Context())
	if err != nil || migrate.Blocked(found) != blocks {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, want := range wanted {
		if !slices.ContainsFunc(found, func(f migrate.Finding) bool {
			return strings.HasPrefix(fmt.Sprintf("%s %s %s: %s", f.Severity, f.Code, f.Table, f.Message), want)
		}) {
			t.Errorf("%q is missing in %+v", want, found)
		}
	}
}

// writers change rows of a slot each, with statements in which {name} is a table, on the source or
// on the shards, whichever serves, until stop is called. They slow down with each turn: a runner on
// a busy machine catches up with them at some time, and they need no more ids than the tables have.
func (k *sakila) writers(t *testing.T, n int, statements func(writer, turn int) []string) (wait func(turns int64), stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var turns atomic.Int64
	wrote := make(chan struct{}, 1)
	for writer := range n {
		all.Go(func() {
			pace := time.NewTicker(sakilaPace()) // or they would write all that the servers can take
			defer pace.Stop()
			for turn := 0; ctx.Err() == nil; turn++ {
				<-pace.C
				pace.Reset(sakilaPace() * time.Duration(1+turn/200))
				if err := k.write(ctx, int64(writer), statements(writer, turn)); err != nil && ctx.Err() == nil {
					t.Errorf("writer %d: %v", writer, err)
					cancel()
				}
				turns.Add(1)
				select {
				case wrote <- struct{}{}:
				default:
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(stop)
	return func(more int64) {
		for until := turns.Load() + more; turns.Load() < until && ctx.Err() == nil; {
			select {
			case <-wrote:
			case <-ctx.Done():
			}
		}
	}, stop
}

// sakilaPace is the time between two transactions of a writer.
func sakilaPace() time.Duration {
	if effort.Soak() {
		return 10 * time.Millisecond
	}
	return 30 * time.Millisecond
}

// write runs a transaction on the serving side.
func (k *sakila) write(ctx context.Context, key int64, statements []string) error {
	at, err := k.cfg.Tables[0].Target(key)
	if err != nil {
		return err
	}
	slot := at.Table[strings.LastIndex(at.Table, "_"):]
	for onShard := false; ctx.Err() == nil; onShard = !onShard {
		db, suffix := k.source, ""
		if onShard {
			db, suffix = k.shards[at.DB], slot
		}
		var names []string
		for _, table := range k.cfg.Tables {
			names = append(names, "{"+table.Name+"}", table.Name+suffix)
		}
		err := inTransaction(db, strings.NewReplacer(names...).Replace, statements)
		var refused *mysql.MySQLError
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &refused):
			return err
		case refused.Number == 1213 || refused.Number == 1205:
			onShard = !onShard
		case refused.Number != 1146:
			return err
		}
	}
	return ctx.Err()
}

// compare fails unless each table has the rows of its shards.
func (k *sakila) compare(t *testing.T, when, suffix, sealed string) {
	t.Helper()
	for _, table := range k.cfg.Tables {
		columns := "CONCAT_WS('|', " + strings.Join(database.Texts(t, k.source, "SELECT CONCAT('COALESCE(`', COLUMN_NAME, '`, ''NULL'')') FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '"+
			table.Name+suffix+"' ORDER BY ORDINAL_POSITION"), ", ") + ")"
		want := database.Texts(t, k.source, "SELECT "+columns+" FROM "+table.Name+suffix)
		var got []string
		for _, at := range table.Map.Targets() {
			got = append(got, database.Texts(t, k.shards[at.DB], "SELECT "+columns+" FROM "+at.Table+sealed)...)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("%s: %s: the source has %d rows, the shards %d", when, table.Name, len(want), len(got))
			reportMissing(t, "only on the source", want, got)
			reportMissing(t, "only on a shard", got, want)
		}
	}
}

// mustRun runs the job until it has caught up, and verifies if no writer runs.
func (k *sakila) mustRun(t *testing.T, when string) {
	t.Helper()
	if err := k.job(t).Run(t.Context()); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
}

func (k *sakila) mustVerify(t *testing.T, when string) {
	t.Helper()
	k.mustRun(t, when)
	if v, err := k.job(t).Verify(t.Context()); err != nil || !v.Clean() {
		t.Errorf("%s: %+v, %v", when, v, err)
	}
}

// goRound migrates a job with writers to the shards and back. It calls
// there while writers pause.
func (k *sakila) goRound(t *testing.T, statements func(writer, turn int) []string, there func(when string)) {
	t.Helper()
	const some = 60
	wait, stop := k.writers(t, 4, statements)
	wait(some)
	k.mustRun(t, "with writers")
	wait(some)
	k.untilReady(t, (*migrate.Job).Cutover)
	wait(some)
	stop()
	k.mustVerify(t, "after the switch")
	k.compare(t, "after the switch", "_old", "")
	there("after the switch")
	wait, stop = k.writers(t, 4, func(writer, turn int) []string { return statements(writer, turn+10_000) })
	wait(some)
	k.untilReady(t, (*migrate.Job).Rollback)
	wait(some)
	stop()
	k.mustVerify(t, "after the way back")
	k.compare(t, "after the way back", "", "_sealed")
	there("after the way back")
}

// untilReady retries a switch, because on a busy machine writers may be faster than the runner.
func (k *sakila) untilReady(t *testing.T, change func(*migrate.Job, context.Context, time.Duration) (migrate.Switch, error)) {
	t.Helper()
	for {
		_, err := change(k.job(t), t.Context(), longPause)
		switch {
		case err == nil:
			return
		case !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "changes arrive faster"):
			t.Fatal(err)
		}
		k.mustRun(t, "before another attempt")
	}
}

// keeps fails unless the source refuses a statement because a key would change, and
// names the row.
func (k *sakila) keeps(t *testing.T, when, statement, says string) {
	t.Helper()
	_, err := k.source.ExecContext(t.Context(), statement)
	if err == nil || !strings.Contains(err.Error(), "1644") || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %s: %v", when, statement, err)
	}
}

// renting are changes of customers with their rentals and payments.
func renting(writer, turn int) []string {
	customer, id := writer+4+4*(turn%10), 1000+4*turn+writer
	return []string{
		fmt.Sprintf("INSERT INTO {rental} (rental_id, rental_date, inventory_id, customer_id, staff_id) VALUES (%d, '2006-01-01' + INTERVAL %[1]d SECOND, %d, %d, 1)", id, 1+turn%300, customer),
		fmt.Sprintf("INSERT INTO {payment} (payment_id, customer_id, staff_id, rental_id, amount, payment_date) VALUES (%d, %d, 2, %[1]d, 0.99, '2006-02-02')", id, customer),
		fmt.Sprintf("UPDATE {customer} SET active = NOT active, last_name = CONCAT('JONES', %d) WHERE customer_id = %d", turn, customer),
		fmt.Sprintf("UPDATE {rental} SET return_date = '2006-03-03' WHERE customer_id = %d AND return_date IS NULL ORDER BY rental_id LIMIT 1", customer),
	}
}

var rented = map[string]string{"customer": "customer_id", "rental": "customer_id", "payment": "customer_id"}

// MySQL's own setting is 2, under which a statement of several rows holds no lock on the
// counter of the log; MariaDB's is 1, under which it does.
func TestSakilasCustomersMigrateUnderWritersWithLocksOnCounters(t *testing.T) {
	for mode, s := range map[string]database.DSNOpener{
		"MySQL 1": server.RunMySQL(t, "--innodb-autoinc-lock-mode=1"), "MariaDB 2": server.RunMariaDB(t, "--innodb-autoinc-lock-mode=2"),
	} {
		t.Run(mode, func(t *testing.T) {
			k := newSakila(t, s, rented, "customer", "rental", "payment")
			if is := database.Texts(t, k.source, "SELECT @@innodb_autoinc_lock_mode")[0]; !strings.HasSuffix(mode, is) {
				t.Fatalf("the mode is %s", is)
			}
			k.goRound(t, renting, func(string) {})
		})
	}
}

func TestSakilasCustomersMigrateWithTheirKeysUnderWriters(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		k := newSakila(t, s, rented, "customer", "rental", "payment")
		k.finds(t, false,
			"warn cascades customer: its foreign key on (store_id) cascades changes of (store_id) of store",
			"warn cascades rental: its foreign key on (inventory_id) cascades changes of (inventory_id) of inventory",
			"warn cascades payment: its foreign key on (staff_id) cascades changes of (staff_id) of staff",
			"info cascades payment: the foreign key on (rental_id) changes its rows when rows of rental change")
		check := func(when string) {
			t.Helper()
			k.keeps(t, when, "UPDATE store SET store_id = 7 WHERE store_id = 2", "keeps (store_id) of store as it is: foreign keys of customer refer to 2")
			k.keeps(t, when, "UPDATE IGNORE staff SET staff_id = staff_id + 10 ORDER BY staff_id", "foreign keys of rental, payment refer to 1")
			k.keeps(t, when, "INSERT INTO address VALUES (1, 'x', '') ON DUPLICATE KEY UPDATE address_id = 9", "refer to 1")
			database.Exec(t, k.source, "UPDATE store SET manager_staff_id = 3 - manager_staff_id WHERE store_id = 9")
			database.Exec(t, k.source, "UPDATE address SET phone = '"+when+"'")
		}
		k.goRound(t, renting, check)
		if err := k.job(t).Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		database.Exec(t, k.source, "UPDATE store SET store_id = 7 WHERE store_id = 2") // the database is as it was
		if left := database.Texts(t, k.source, "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		if n := database.Texts(t, k.source, "SELECT COUNT(*) FROM customer WHERE store_id = 7"); n[0] != "30" {
			t.Errorf("the key has changed %s customers", n[0])
		}
	})
}

// Tables whose keys are of two columns cannot be in the job: Inspect has the statements
// that drop their foreign keys, and those that make them again.
func TestSakilasFilmsMigrateWithoutTheKeysOfOthersUnderWriters(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		k := newSakila(t, s, map[string]string{"film": "film_id", "film_text": "film_id", "inventory": "film_id"}, "film", "film_text", "inventory")
		others := []string{"film_actor", "film_category", "rental"}
		definitions := func() (all []string) {
			for _, table := range others {
				var name, text string
				if err := k.source.QueryRowContext(t.Context(), "SHOW CREATE TABLE "+table).Scan(&name, &text); err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(text, "\n")
				slices.Sort(lines)
				all = append(all, strings.ReplaceAll(strings.Join(lines, "\n"), ",", ""))
			}
			return all
		}
		before := definitions()
		plan, err := k.job(t).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found, err := k.job(t).Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var again []string
		for _, f := range found {
			if f.Severity != migrate.Block {
				continue
			}
			_, statements, _ := strings.Cut(f.Fix, "or drop the foreign key: ")
			drop, add, ok := strings.Cut(statements, "; after an abort, create it again by: ")
			if !ok {
				t.Fatalf("%+v", f)
			}
			database.Exec(t, k.source, drop)
			again = append(again, add)
		}
		if len(again) != len(others) {
			t.Fatalf("%q", again)
		}
		for _, statement := range plan.AfterAbort {
			if !slices.Contains(again, statement.SQL) {
				t.Errorf("the plan has %s, which Inspect does not", statement.SQL)
			}
		}
		if len(plan.Before) != len(others) || len(plan.AfterAbort) != len(others) {
			t.Errorf("%+v", plan)
		}
		k.finds(t, false, "warn cascades film: its foreign key on (language_id) cascades")
		k.goRound(t, func(writer, turn int) []string {
			film, id := writer+4+4*(turn%70), 1000+4*turn+writer
			return []string{
				fmt.Sprintf("INSERT INTO {film} (film_id, title, description, language_id) VALUES (%d, 'NEW %[1]d', 'turn %d', 1)", id, turn),
				fmt.Sprintf("INSERT INTO {film_text} (film_id, title) VALUES (%d, 'NEW %[1]d')", id),
				fmt.Sprintf("UPDATE {film} SET title = CONCAT('OLD ', %d), rating = 'R' WHERE film_id = %d", turn, film),
				fmt.Sprintf("INSERT INTO {inventory} (inventory_id, film_id, store_id) VALUES (%d, %[1]d, 2)", id),
				fmt.Sprintf("DELETE FROM {inventory} WHERE film_id = %d", id-40),
				fmt.Sprintf("DELETE FROM {film} WHERE film_id = %d", id-40),
			}
		}, func(when string) {
			k.keeps(t, when, "UPDATE language SET language_id = 7 WHERE language_id = 2", "foreign keys of film refer to 2")
		})
		if err := k.job(t).Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, add := range again {
			database.Exec(t, k.source, add)
		}
		if after := definitions(); !slices.Equal(before, after) {
			t.Errorf("before %q, after %q", before, after)
		}
	})
}

// sakilaTriggers are all that Sakila has.
var sakilaTriggers = []string{
	"CREATE TRIGGER ins_film AFTER INSERT ON film FOR EACH ROW BEGIN\n INSERT INTO film_text (film_id, title, description)\n VALUES (new.film_id, new.title, new.description);\n END",
	`CREATE TRIGGER upd_film AFTER UPDATE ON film FOR EACH ROW BEGIN
		IF (old.title != new.title) OR (old.description != new.description) OR (old.film_id != new.film_id)
		THEN
			UPDATE film_text
				SET title=new.title,
					description=new.description,
					film_id=new.film_id
			WHERE film_id=old.film_id;
		END IF;
	END`,
	"CREATE TRIGGER del_film AFTER DELETE ON film FOR EACH ROW BEGIN DELETE FROM film_text WHERE film_id = old.film_id; END",
	"CREATE TRIGGER customer_create_date BEFORE INSERT ON customer FOR EACH ROW SET NEW.create_date = NOW()",
	"CREATE TRIGGER payment_date BEFORE INSERT ON payment FOR EACH ROW SET NEW.payment_date = NOW()",
	"CREATE TRIGGER rental_date BEFORE INSERT ON rental FOR EACH ROW SET NEW.rental_date = NOW()",
}

// guard applies the fixes of Inspect to the triggers of the job's tables.
func (k *sakila) guard(t *testing.T, triggers int) {
	t.Helper()
	for _, text := range sakilaTriggers {
		database.Exec(t, k.source, text)
	}
	found, err := k.job(t).Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := k.source.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	guarded := 0
	for _, f := range found {
		_, script, ok := strings.Cut(f.Fix, "in one connection: ")
		if f.Code != migrate.ForeignTriggers || f.Severity != migrate.Block || !ok {
			continue
		}
		parts := strings.SplitN(strings.TrimSuffix(script, "; UNLOCK TABLES"), "; ", 4)
		for _, statement := range append(parts, "UNLOCK TABLES") {
			if _, err := conn.ExecContext(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		guarded++
	}
	if guarded != triggers {
		t.Fatalf("%d triggers were guarded: %+v", guarded, found)
	}
}

func TestSakilasFilmsMigrateWithTheirTriggersUnderWriters(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		k := newSakila(t, s, map[string]string{"film": "film_id", "film_text": "film_id", "inventory": "film_id"}, "film", "film_text", "inventory")
		k.guard(t, 3)
		k.finds(t, true, "block outside_job film: the table film_actor, which is not in the job, refers to it by (film_id)",
			"block outside_job film: the table film_category, which is not in the job, refers to it by (film_id)", "block outside_job inventory: the table rental, which is not in the job, refers to it by (inventory_id)")
		database.Exec(t, k.source, "ALTER TABLE film_actor DROP FOREIGN KEY fk_film_actor_film")
		database.Exec(t, k.source, "ALTER TABLE film_category DROP FOREIGN KEY fk_film_category_film")
		database.Exec(t, k.source, "ALTER TABLE rental DROP FOREIGN KEY fk_rental_inventory")
		plan, err := k.job(t).Plan(t.Context())
		if err != nil || len(plan.AtSwitch) != 3*4 || len(plan.Before) > 0 {
			t.Errorf("%+v, %v", plan, err)
		}
		k.finds(t, false, "warn triggers film: the shards get the trigger del_film before the switch", "warn cascades film: its foreign key on (language_id) cascades")
		check := func(when string) {
			t.Helper()
			k.keeps(t, when, "UPDATE language SET language_id = 7 WHERE language_id = 2", "foreign keys of film refer to 2")
			if n := database.Texts(t, k.shards["a"], "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() AND TRIGGER_NAME IN ('ins_film_0', 'upd_film_2', 'del_film_0')"); n[0] != "3" {
				t.Errorf("%s: a has %s of 3 triggers", when, n[0])
			}
		}
		k.goRound(t, func(writer, turn int) []string {
			film, id := writer+4+4*(turn%70), 1000+4*turn+writer
			return []string{
				fmt.Sprintf("INSERT INTO {film} (film_id, title, description, language_id) VALUES (%d, 'NEW %[1]d', 'turn %d', 1)", id, turn),
				fmt.Sprintf("UPDATE {film} SET title = CONCAT(title, '!'), description = 'changed %d' WHERE film_id = %d", turn, film),
				fmt.Sprintf("INSERT INTO {inventory} (inventory_id, film_id, store_id) VALUES (%d, %[1]d, 2)", id),
				fmt.Sprintf("DELETE FROM {inventory} WHERE film_id = %d", id-8*writer-40),
				fmt.Sprintf("DELETE FROM {film} WHERE film_id = %d", id-8*writer-40),
			}
		}, check)
		if odd := database.Texts(t, k.source, "SELECT f.film_id FROM film f LEFT JOIN film_text x ON x.film_id = f.film_id AND x.title = f.title AND x.description = f.description WHERE x.film_id IS NULL"); len(odd) > 0 {
			t.Errorf("films whose text is another one: %q", odd)
		}
		if odd := database.Texts(t, k.source, "SELECT film_id FROM film_text WHERE film_id NOT IN (SELECT film_id FROM film)"); len(odd) > 0 {
			t.Errorf("texts without a film: %q", odd)
		}
		if err := k.job(t).Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := database.Texts(t, k.shards["a"], "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// What the server sets in a row on the source must not be set again on its way.
func TestSakilasDatesAreSetOnceByTriggersUnderWriters(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		k := newSakila(t, s, rented, "customer", "rental", "payment")
		// Rentals of one customer in the same second are of other inventory in the shop of Sakila.
		database.Exec(t, k.source, "ALTER TABLE rental DROP INDEX rental_date")
		k.guard(t, 3)
		k.goRound(t, renting, func(string) {})
		if set := database.Texts(t, k.source, "SELECT COUNT(*) FROM payment WHERE payment_id > 1000 AND payment_date < '2007-01-01'"); set[0] != "0" {
			t.Errorf("%s payments have another date than that of their insert", set[0])
		}
		if set := database.Texts(t, k.source, "SELECT COUNT(*) FROM payment WHERE payment_id > 41000"); set[0] == "0" {
			t.Error("the shards have taken no payment")
		}
	})
}
