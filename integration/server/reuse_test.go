// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
)

// usedKinds are servers that tests may use one after another.
var usedKinds = map[string]func(tb testing.TB) (sqlServer, *instance){
	"MariaDB":    func(tb testing.TB) (sqlServer, *instance) { tb.Helper(); m := RunMariaDB(tb); return m, m.instance },
	"MySQL":      func(tb testing.TB) (sqlServer, *instance) { tb.Helper(); m := RunMySQL(tb); return m, m.instance },
	"PostgreSQL": func(tb testing.TB) (sqlServer, *instance) { tb.Helper(); p := RunPostgres(tb); return p, p.instance },
}

// reuse has the servers of a test used again until it ends.
func reuse(t *testing.T) {
	t.Helper()
	used.wanted = true
	t.Cleanup(used.stop)
}

// countsOf are queries for what a test may leave behind: databases and tables in them, users, and connections.
var countsOf = map[bool][]string{
	false: {
		"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA LIKE 'a%'",
		"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'a%'",
		"SELECT COUNT(*) FROM mysql.user WHERE User LIKE 'a%'",
		"SELECT COUNT(*) FROM mysql.db WHERE User LIKE 'a%'",
		"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER LIKE 'a%'",
	},
	true: {
		"SELECT COUNT(*) FROM pg_database WHERE datname LIKE 'a%'",
		"SELECT COUNT(*) FROM pg_roles WHERE rolname LIKE 'a%'",
		"SELECT COUNT(*) FROM pg_stat_activity WHERE datname LIKE 'a%'",
	},
}

func TestAServerThatIsUsedAgainHasNothingOfTheTestBefore(t *testing.T) {
	reuse(t)
	for kind, run := range usedKinds {
		var first, second string
		t.Run(kind, func(t *testing.T) {
			s, i := run(t)
			first = i.dir.path
			db := s.Open(t, "a shop")
			for _, statement := range []string{"CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE USER app", "INSERT INTO orders VALUES (1)", "GRANT SELECT ON orders TO app"} {
				mustExec(t, db, statement)
			}
			open, err := i.kind.open(i.port, "a shop") // and never closes it
			if err != nil {
				t.Fatal(err)
			}
			mustExec(t, open, "SELECT 1")
		})
		t.Run(kind, func(t *testing.T) {
			s, i := run(t)
			second = i.dir.path
			for _, query := range countsOf[kind == "PostgreSQL"] {
				if n := queryInt(t, s.Open(t, "b"), query); n != 0 {
					t.Errorf("%s: %d", query, n)
				}
			}
		})
		if first != second {
			t.Errorf("%s was started again", kind)
		}
	}
}

// changes are statements after which a server is not as it was, and what undoes them. No removal of databases and
// users does.
var changes = map[string][][2]string{
	"MariaDB": {
		{"SET GLOBAL sql_mode = ''", "SET GLOBAL sql_mode = DEFAULT"},
		{"SET GLOBAL auto_increment_increment = 2", "SET GLOBAL auto_increment_increment = 1"},
		{"SET GLOBAL read_only = ON", "SET GLOBAL read_only = OFF"},
		{"CREATE SERVER other FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", "DROP SERVER other"},
		{"INSERT INTO mysql.db (Host, Db, User) VALUES ('h', 'other', 'root')", "DELETE FROM mysql.db WHERE Host = 'h'"},
		{"CHANGE MASTER TO MASTER_HOST = '127.0.0.1'", "RESET SLAVE ALL"},
		{"XA START 'x'; INSERT INTO t VALUES (1); XA END 'x'; XA PREPARE 'x'", "XA ROLLBACK 'x'"},
	},
	"MySQL": {
		{"SET GLOBAL sql_mode = ''", "SET GLOBAL sql_mode = DEFAULT"},
		{"SET GLOBAL auto_increment_increment = 2", "SET GLOBAL auto_increment_increment = 1"},
		{"SET GLOBAL super_read_only = ON", "SET GLOBAL read_only = OFF"},
		{"CREATE SERVER other FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", "DROP SERVER other"},
		{"GRANT SELECT ON other.* TO root@localhost", "REVOKE SELECT ON other.* FROM root@localhost"},
		{"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1'", "RESET REPLICA ALL"},
		{"XA START 'x'; INSERT INTO t VALUES (1); XA END 'x'; XA PREPARE 'x'", "XA ROLLBACK 'x'"},
	},
	"PostgreSQL": {
		{"ALTER SYSTEM SET work_mem = '1MB'", "ALTER SYSTEM RESET work_mem"},
		{"ALTER ROLE postgres SET work_mem = '1MB'", "ALTER ROLE postgres RESET work_mem"},
		{"ALTER ROLE postgres CONNECTION LIMIT 50", "ALTER ROLE postgres CONNECTION LIMIT -1"},
		{"ALTER DATABASE template1 CONNECTION LIMIT 5", "ALTER DATABASE template1 CONNECTION LIMIT -1"},
		{"CREATE TABLE left_behind (id INT)", "DROP TABLE left_behind"},
		{"CREATE SCHEMA left_behind", "DROP SCHEMA left_behind"},
		{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION f"},
		{"SELECT pg_create_physical_replication_slot('s')", "SELECT pg_drop_replication_slot('s')"},
	},
}

func TestAServerThatIsNotAsItWasIsNotUsedAgain(t *testing.T) {
	reuse(t)
	for kind, run := range usedKinds {
		s, i := run(t)
		for _, change := range changes[kind] {
			apply(t, s, i, change[0])
			if restored(i) == nil {
				t.Errorf("%s is to be used again after %s", kind, change[0])
			}
			apply(t, s, i, change[1])
			if err := restored(i); err != nil {
				t.Errorf("%s is not to be used again after %s, undone by %s: %v", kind, change[0], change[1], err)
			}
		}
	}
}

func TestAServerThatWasKilledIsNotUsedAgain(t *testing.T) {
	reuse(t)
	if !thenAnother(t, "PostgreSQL", func(t *testing.T, s sqlServer, _ *instance) {
		t.Helper()
		s.Kill()
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}) {
		t.Error("it was used again")
	}
}

func TestAServerOfAnotherZoneOrPlaceIsNotUsedAgain(t *testing.T) {
	reuse(t)
	for name, value := range map[string]string{ZoneVar: "Asia/Tokyo", "TMPDIR": t.TempDir()} {
		if !thenAnother(t, "MariaDB", func(*testing.T, sqlServer, *instance) { t.Setenv(name, value) }) {
			t.Errorf("a server was used again with another %s", name)
		}
	}
}

func TestAServerWithSettingsIsNotUsedAgain(t *testing.T) {
	reuse(t)
	var first, second string
	t.Run("with", func(t *testing.T) { first = RunMariaDB(t, "--max-connections=20").dir.path })
	t.Run("without", func(t *testing.T) { second = RunMariaDB(t).dir.path })
	t.Run("with", func(t *testing.T) {
		if third := RunMariaDB(t, "--max-connections=20").dir.path; third == first || third == second {
			t.Error("a server was used again")
		}
	})
}

// thenAnother reports whether a test gets another server of a kind than a test before it, which does something with it. The names of both
// have the kind in them, by which tests are chosen for the newest PostgreSQL.
func thenAnother(t *testing.T, kind string, do func(t *testing.T, s sqlServer, i *instance)) bool {
	t.Helper()
	var first, second string
	t.Run(kind+", first", func(t *testing.T) {
		s, i := usedKinds[kind](t)
		first = i.dir.path
		do(t, s, i)
	})
	t.Run(kind+", second", func(t *testing.T) {
		_, i := usedKinds[kind](t)
		second = i.dir.path
	})
	return first != second
}

// apply executes statements on one connection. On MariaDB and MySQL there is a table t.
func apply(t *testing.T, s sqlServer, i *instance, statements string) {
	t.Helper()
	db := i.pool(t, "")
	if strings.HasPrefix(statements, "XA START") {
		db = s.Open(t, "app")
		mustExec(t, db, "CREATE TABLE t (id INT PRIMARY KEY)")
	}
	db.SetMaxOpenConns(1)
	for statement := range strings.SplitSeq(statements, "; ") {
		mustExec(t, db, statement)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
