// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func TestAKeyThatAnotherKeyChangesCannotBeWatched(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "chain", "odd", sharding.Low(1), "CREATE TABLE people (id INT PRIMARY KEY)",
			"CREATE TABLE users (id INT PRIMARY KEY, CONSTRAINT one FOREIGN KEY (id) REFERENCES people (id) ON UPDATE CASCADE)",
			"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, FOREIGN KEY (u) REFERENCES users (id) ON UPDATE CASCADE)")
		o.finds(t, "block outside_job (u) refers to the table users, which is not in the job, and changes rows here by itself when its key is changed, and no trigger there would note that: the foreign key one to people changes (id) of users by itself")
		if err := o.Run(t.Context()); !errors.Is(err, migrate.ErrNotReady) {
			t.Errorf("a run ended with %v", err)
		}
		database.Exec(t, o.source, "ALTER TABLE users DROP FOREIGN KEY one")
		o.run(t)
	})
}

func TestAKeyToTheTableItselfThatCarriesUpdatesIsTaken(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		o := newOdd(t, s, "self", "odd", sharding.Low(1),
			"CREATE TABLE odd (id INT PRIMARY KEY, u INT NOT NULL, up INT, FOREIGN KEY (up) REFERENCES odd (id) ON UPDATE CASCADE)",
			"INSERT INTO odd VALUES (1, 1, NULL), (2, 2, 1), (3, 3, 2)")
		o.run(t)
		if _, err := o.source.ExecContext(t.Context(), "UPDATE odd SET id = 9 WHERE id = 1"); err == nil || !strings.Contains(err.Error(), "1451") {
			t.Errorf("the server has carried an update on to the same table: %v", err)
		}
	})
}

func TestAChangeOfAKeyThatItsCollationDoesNotSeeIsRefusedOrFollowed(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		k := &sakila{source: s.Open(t, "cases"), shards: sharding.DBs{"a": s.Open(t, "cases_a"), "b": s.Open(t, "cases_b")}}
		for _, statement := range []string{
			"CREATE TABLE users (name VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY)",
			"CREATE TABLE blogs (id INT PRIMARY KEY, title VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL UNIQUE)",
			"CREATE TABLE posts (id INT PRIMARY KEY, user VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, blog VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL," +
				" FOREIGN KEY (user) REFERENCES users (name) ON UPDATE CASCADE, FOREIGN KEY (blog) REFERENCES blogs (title) ON UPDATE CASCADE)",
			"INSERT INTO users VALUES ('ann'), ('bob')", "INSERT INTO blogs VALUES (1, 'sea'), (2, 'sky')", "INSERT INTO posts VALUES (1, 'ann', 'sea'), (2, 'bob', 'sky')",
		} {
			database.Exec(t, k.source, statement)
		}
		k.cfg = migrate.Config{Name: "cases", Source: k.source, Shards: k.shards}
		for _, name := range []string{"blogs", "posts"} {
			m, err := sharding.Spread([]string{"a", "b"}, 2, name+"_%d")
			if err != nil {
				t.Fatal(err)
			}
			k.cfg.Tables = append(k.cfg.Tables, migrate.Table{Table: sharding.Table{Name: name, Key: "id", Rule: sharding.Low(1), Map: m}})
		}
		k.mustRun(t, "before")
		k.keeps(t, "before the switch", "UPDATE users SET name = 'ANN' WHERE name = 'ann'", "keeps (name) of users as it is: foreign keys of posts refer to ann")
		database.Exec(t, k.source, "UPDATE blogs SET title = 'SEA' WHERE title = 'sea'")
		k.mustVerify(t, "after a change of letters")
		k.compare(t, "after a change of letters", "", "")

		watch := database.Texts(t, k.source, "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE() AND EVENT_OBJECT_TABLE = 'users'")
		database.Exec(t, k.source, "DROP TRIGGER "+watch[0])
		if err := k.job(t).Run(t.Context()); !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), watch[0]) {
			t.Errorf("without the trigger on users: %v", err)
		}
	})
}

// A server names constraints after their table, and MySQL renames these with it.
func TestATableWhoseConstraintsWouldGetNamesThatAreTooLongIsRefused(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, s database.DSNOpener, _ []string) {
		name := strings.Repeat("n", 55)
		o := newOdd(t, s, "names", name, sharding.Low(1), "CREATE TABLE up (id INT PRIMARY KEY)",
			"CREATE TABLE "+name+" (id INT PRIMARY KEY, u INT NOT NULL, CHECK (u < 1000), FOREIGN KEY (u) REFERENCES up (id))")
		if isMariaDB(t, o.source) { // cuts them
			o.run(t)
			if _, err := o.Cutover(t.Context(), longPause); err != nil {
				t.Error(err)
			}
			return
		}
		o.refuses(t, migrate.LongName, "MySQL renames "+name+"_chk_1, "+name+"_ibfk_1 along with the table")
		database.Exec(t, o.source, "ALTER TABLE "+name+" DROP CHECK "+name+"_chk_1, ADD CONSTRAINT small CHECK (u < 1000), DROP FOREIGN KEY "+name+"_ibfk_1, ADD CONSTRAINT upwards FOREIGN KEY (u) REFERENCES up (id)")
		o.run(t)
		if _, err := o.Cutover(t.Context(), longPause); err != nil {
			t.Error(err)
		}
		if _, err := o.Rollback(t.Context(), longPause); err != nil {
			t.Error(err)
		}
	})
}
