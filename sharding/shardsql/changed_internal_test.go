// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"testing"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
)

func TestWhatAStatementChangesInItsSessionIsToldByItsText(t *testing.T) {
	mysql := &server{Server: dialect.Server{Dialect: dialect.MySQL{}}, reads: sqlparse.Dialect{Flavor: sqltext.MySQL}}
	postgres := &server{Server: dialect.Server{Dialect: dialect.Postgres{}}, reads: sqlparse.Dialect{Family: sqlparse.PostgreSQL, Flavor: sqltext.PostgreSQL}}
	for _, c := range []struct {
		in    *server
		text  string
		of    change
		local bool
	}{
		{mysql, "SELECT 1", nothing, false},
		{mysql, "UPDATE t SET a = 1", nothing, false},
		{mysql, " /* x */ set time_zone = '+05:00'", settings, false},
		{mysql, "SET @@session.sql_mode = ''", settings, false},
		{mysql, "SET @a = CONCAT('x', 'y'), @b := 2", variables, false},
		{mysql, "SET @a = 1, sql_mode = ''", settings, false},
		{mysql, "SET GLOBAL max_connections = 7, @@persist.x = 1", nothing, false},
		{mysql, "SET GLOBAL a = 1, SESSION b = 2", settings, false},
		{mysql, "SET LOCAL time_zone = 'SYSTEM'", settings, false},
		{mysql, "SET TRANSACTION READ ONLY", settings, true},
		{mysql, "SET PASSWORD = 'x'", nothing, false},
		{mysql, "SELECT MAX(id) INTO @top FROM coupons", variables, false},
		{mysql, "SELECT 'a@b.example'", nothing, false},
		{mysql, "SELECT @@version", nothing, false},
		{mysql, "START TRANSACTION", begins, false},
		{mysql, "ROLLBACK", ends, false},
		{mysql, "ROLLBACK WORK TO SAVEPOINT a", nothing, false},
		{postgres, "SET TimeZone TO 'UTC'", settings, false},
		{postgres, "SET LOCAL TimeZone TO 'UTC'", settings, true},
		{postgres, "SET CONSTRAINTS ALL DEFERRED", settings, true},
		{postgres, "RESET ALL", settings, false},
		{postgres, "SELECT set_config('TimeZone', 'UTC', false)", settings, false},
		{postgres, "SELECT @ -5", nothing, false},
	} {
		if of, local := c.in.changed(c.text); of != c.of || local != c.local {
			t.Errorf("%s: %d, %t", c.text, of, local)
		}
	}
}
