// SPDX-License-Identifier: Apache-2.0

package server

import (
	"database/sql"
	"strings"
	"testing"
)

func TestEachTestHasDatabasesOfItsOwnOnASharedServer(t *testing.T) {
	shared, err := StartShared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shared.Stop)
	name, ports, _ := strings.Cut(shared.Environment(), "=")
	t.Setenv(name, ports)
	for kind, share := range map[string]func(tb testing.TB) sqlServer{
		"mariadb":  func(tb testing.TB) sqlServer { return ShareMariaDB(tb) },
		"mysql":    func(tb testing.TB) sqlServer { return ShareMySQL(tb) },
		"postgres": func(tb testing.TB) sqlServer { return SharePostgres(tb) },
	} {
		var shop *sql.DB
		t.Run(kind, func(t *testing.T) {
			for range 2 { // as two tests
				one := share(t)
				mustExec(t, one.Open(t, "shop"), "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
				mustExec(t, one.Open(t, "shop"), "INSERT INTO orders VALUES (1)") // the same one
				if !strings.Contains(one.DSN("shop"), "/shop_t") {
					t.Errorf("the DSN is %s", one.DSN("shop"))
				}
				shop = one.Open(t, "shop")
			}
		})
		if err := shop.PingContext(t.Context()); err == nil {
			t.Errorf("%s: a pool outlived its test", kind)
		}
		server := share(t)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: a shared server was killed", kind)
				}
			}()
			server.Kill()
		}()
		query := "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name LIKE 'shop%'"
		if kind == "postgres" {
			query = "SELECT COUNT(*) FROM pg_database WHERE datname LIKE 'shop%'"
		}
		if left := queryInt(t, server.Open(t, "another"), query); left != 0 {
			t.Errorf("%s: %d databases outlived their tests", kind, left)
		}
	}
}

func TestOutsideOfARunThatSharesServersEachTestHasAPrivateOne(t *testing.T) {
	t.Setenv(sharedVar, "")
	one, two := ShareMariaDB(t), ShareMariaDB(t)
	if one.DSN("shop") == two.DSN("shop") {
		t.Errorf("both have %s", one.DSN("shop"))
	}
}
