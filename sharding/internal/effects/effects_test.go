// SPDX-License-Identifier: Apache-2.0

package effects_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/effects"
)

var (
	mysql    = sqlparse.Dialect{Family: sqlparse.MySQL}
	mariadb  = sqlparse.Dialect{Family: sqlparse.MariaDB}
	postgres = sqlparse.Dialect{Family: sqlparse.PostgreSQL}
	sqlite   = sqlparse.Dialect{Family: sqlparse.SQLite}
)

func TestWhatAStatementChangesInItsSessionIsToldByItsText(t *testing.T) {
	for _, c := range []struct {
		in    sqlparse.Dialect
		text  string
		of    effects.Change
		local bool
	}{
		{mysql, "SELECT 1", effects.Nothing, false},
		{mysql, "UPDATE t SET a = 1", effects.Nothing, false},
		{mysql, " /* x */ set time_zone = '+05:00'", effects.Settings, false},
		{mysql, "SET @@session.sql_mode = ''", effects.Settings, false},
		{mysql, "SET @a = CONCAT('x', 'y'), @b := 2", effects.Variables, false},
		{mysql, "SET @a = 1, sql_mode = ''", effects.Settings, false},
		{mysql, "SET GLOBAL max_connections = 7, @@persist.x = 1", effects.Nothing, false},
		{mysql, "SET GLOBAL a = 1, SESSION b = 2", effects.Settings, false},
		{mysql, "SET LOCAL time_zone = 'SYSTEM'", effects.Settings, false},
		{mysql, "SET TRANSACTION READ ONLY", effects.Settings, true},
		{mysql, "SET PASSWORD = 'x'", effects.Nothing, false},
		{mysql, "SELECT MAX(id) INTO @top FROM coupons", effects.Variables, false},
		{mysql, "SELECT 'a@b.example'", effects.Nothing, false},
		{mysql, "SELECT @@version", effects.Nothing, false},
		{mysql, "START TRANSACTION", effects.Begins, false},
		{mysql, "ROLLBACK", effects.Ends, false},
		{mysql, "ROLLBACK WORK TO SAVEPOINT a", effects.Nothing, false},
		{postgres, "SET TimeZone TO 'UTC'", effects.Settings, false},
		{postgres, "SET LOCAL TimeZone TO 'UTC'", effects.Settings, true},
		{postgres, "SET CONSTRAINTS ALL DEFERRED", effects.Settings, true},
		{postgres, "RESET ALL", effects.Settings, false},
		{postgres, "SELECT set_config('TimeZone', 'UTC', false)", effects.Settings, false},
		{postgres, "SELECT @ -5", effects.Nothing, false},
		{postgres, "/* /* nested */ */ SET TimeZone TO 'UTC'", effects.Settings, false},
		{postgres, "ABORT", effects.Ends, false},
		{postgres, "PREPARE TRANSACTION 'mine'", effects.Ends, false},
		{postgres, "PREPARE one AS SELECT 1", effects.Nothing, false},
		{mysql, "ABORT", effects.Nothing, false},
		{sqlite, "SAVEPOINT a", effects.Begins, false},
		{sqlite, "RELEASE a", effects.Ends, false},
		{mysql, "SAVEPOINT a", effects.Nothing, false},
		{sqlite, "PRAGMA foreign_keys = ON", effects.Settings, false},
		{sqlite, "PRAGMA foreign_keys", effects.Nothing, false},
	} {
		if e := effects.Of(c.text, c.in, false); e.Change != c.of || e.Local != c.local {
			t.Errorf("%s: %+v", c.text, e)
		}
	}
}

func TestAStatelessTextChangesNothing(t *testing.T) {
	if e := effects.Of("SELECT note FROM orders WHERE note = '@x := 1'", mysql, true); e.Change != effects.Nothing || e.Assigns || e.Ends || e.About != nil {
		t.Errorf("%+v", e)
	}
}

func TestSettingsOnWhichRoutesAndResultsDependAreTold(t *testing.T) {
	for text, depend := range map[string]bool{
		"SET sql_mode = 'ANSI_QUOTES'":                                   true,
		"SET SESSION SQL_SELECT_LIMIT=5":                                 true,
		"SET a = 1, @@session.sql_select_limit := 5":                     true,
		"SET sql_select_limit = DEFAULT":                                 false,
		"SET div_precision_increment = 10":                               true,
		"SET max_sort_length = 4":                                        true,
		"SET time_zone = '+05:00'":                                       false,
		"SELECT 'sql_mode'":                                              false,
		"SET extra_float_digits TO 0":                                    true,
		"SET LOCAL extra_float_digits = '-3'":                            true,
		"SELECT set_config('extra_float_digits', '0', false)":            true,
		"SET extra_float_digits = 3":                                     false,
		"SELECT pg_catalog.set_config('extra_float_digits', '1', false)": false,
	} {
		in := mysql
		if strings.Contains(text, "float") {
			in = postgres
		}
		if e := effects.Of(text, in, false); e.Decides != depend {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

func TestVariablesAreAssignedByTheirOperator(t *testing.T) {
	for text, assigns := range map[string]bool{
		"SELECT @top := MAX(id) FROM orders": true,
		"SELECT @top":                        false,
		"SELECT ':=', 1":                     false,
	} {
		if e := effects.Of(text, mysql, false); e.Assigns != assigns {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

func TestDefinitionsEndTheTransactionOnMySQLAndMariaDB(t *testing.T) {
	for text, ends := range map[string]bool{
		"CREATE TABLE t (id INT)":              true,
		"CREATE OR REPLACE TABLE t (id INT)":   true,
		"CREATE TEMPORARY TABLE t (id INT)":    false,
		"CREATE OR REPLACE TEMPORARY TABLE t":  false,
		"ALTER TABLE t ADD n INT":              true,
		"ANALYZE TABLE t":                      true,
		"ANALYZE SELECT 1":                     false,
		"BEGIN":                                true,
		"COMMIT":                               true,
		"/* CREATE TABLE t */ DELETE FROM t":   false,
		"ROLLBACK TO SAVEPOINT a":              false,
		"INSERT INTO t (create) VALUES ('id')": false,
	} {
		for _, in := range []sqlparse.Dialect{mysql, mariadb} {
			if e := effects.Of(text, in, false); e.Ends != ends {
				t.Errorf("%s: %+v", text, e)
			}
		}
	}
	if effects.Of("CREATE TABLE t (id INT)", postgres, false).Ends {
		t.Error("PostgreSQL has transactions of definitions")
	}
}

func TestQuestionsAboutEarlierStatementsAreFound(t *testing.T) {
	for text, about := range map[string][]string{
		"SELECT ROW_COUNT(), last_insert_id ( )": {"ROW_COUNT()", "last_insert_id ( )"},
		"SELECT @@warning_count":                 {"@@warning_count"},
		"SHOW  WARNINGS":                         {"SHOW  WARNINGS"},
		"UPDATE orders SET changes = 1":          nil,
		"SELECT row_count FROM orders":           nil,
	} {
		if e := effects.Of(text, mysql, true); !slices.Equal(e.About, about) {
			t.Errorf("%s: %q", text, e.About)
		}
	}
}

func TestAVariableIsNotASettingNorAPartOfAText(t *testing.T) {
	for text, names := range map[string]bool{
		"SELECT @x":            true,
		"SELECT @`x y`":        true,
		"SELECT @@x":           false,
		"SELECT 'a@b.example'": false,
		"SELECT 1 -- @x":       false,
	} {
		if effects.NamesVariable(text, mysql) != names {
			t.Error(text)
		}
	}
}
