// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// lockWait is how many seconds a statement waits for a table: see idleLimit.
const lockWait = "20"

// mysqlSettings are the settings of every connection. A server need not know all of them.
var mysqlSettings = map[string]string{
	// A copied value must not change.
	"sql_mode":  "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION",
	"time_zone": "+00:00",
	// Each statement reads committed data and is committed at once.
	"autocommit":            "ON",
	"tx_isolation":          "READ-COMMITTED",
	"transaction_isolation": "READ-COMMITTED",
	"tx_read_only":          "OFF",
	"transaction_read_only": "OFF",
	// Nothing truncates a result or ends a statement early.
	"sql_select_limit":         "18446744073709551615",
	"max_join_size":            "18446744073709551615",
	"sql_safe_updates":         "OFF",
	"sql_auto_is_null":         "OFF",
	"max_statement_time":       "0.000000",
	"max_execution_time":       "0",
	"wait_timeout":             "28800",
	"lock_wait_timeout":        lockWait,
	"innodb_lock_wait_timeout": "10",
	// Rewriting a parent in a retired table must not delete its children.
	"foreign_key_checks": "OFF",
	"unique_checks":      "ON",
	// The source may have rows older than a CHECK; they are copied unchecked.
	"check_constraint_checks": "OFF",
	// COMMIT ends a transaction, and nothing else.
	"completion_type": "NO_CHAIN",
	// Estimates are the engine's, and not up to a day old.
	"information_schema_stats_expiry": "0",
	// Definitions are read with quoted names.
	"sql_quote_show_create": "ON",
}

func (m mysqlConnections) pin(ctx context.Context, c *sql.Conn) error {
	// Another sql_select_limit could truncate the list of variables, and another
	// completion_type could make ROLLBACK end the connection.
	if _, err := c.ExecContext(ctx, "SET SESSION sql_select_limit = 18446744073709551615, SESSION completion_type = 'NO_CHAIN'"); err != nil {
		return fmt.Errorf("%w: sql_select_limit, completion_type: %w", ErrSession, err)
	}
	known, err := mysqlVariables(ctx, c)
	if err != nil {
		return err
	}
	var set []string
	for _, name := range slices.Sorted(maps.Keys(known)) {
		set = append(set, "SESSION "+name+" = "+mysqlSetting(mysqlSettings[name]))
	}
	// ROLLBACK ends a transaction that a pooled connection may have begun, and UNLOCK TABLES
	// ends its locks.
	for _, statement := range []string{"ROLLBACK", "UNLOCK TABLES", "SET NAMES utf8mb4", "SET " + pinnedMark + " = CONNECTION_ID()", "SET " + strings.Join(set, ", ")} {
		if _, err := c.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSession, statement, err)
		}
	}
	known, err = mysqlVariables(ctx, c)
	if err != nil {
		return err
	}
	for name, is := range known {
		if want := mysqlSettings[name]; !sameSetting(name, is, want) {
			return fmt.Errorf("%w: %s is %q, not %q", ErrSession, name, is, want)
		}
	}
	return nil
}

func mysqlVariables(ctx context.Context, c *sql.Conn) (map[string]string, error) {
	names := "'" + strings.Join(slices.Sorted(maps.Keys(mysqlSettings)), "', '") + "'"
	rows, err := c.QueryContext(ctx, "SHOW SESSION VARIABLES WHERE Variable_name IN ("+names+")")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	known := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		known[strings.ToLower(name)] = value
	}
	return known, rows.Err()
}

func mysqlSetting(v string) string {
	if v == "ON" || v == "OFF" || v[0] >= '0' && v[0] <= '9' {
		return v
	}
	return "'" + v + "'"
}

func sameSetting(name, is, want string) bool {
	if name == "sql_mode" {
		a, b := strings.Split(is, ","), strings.Split(want, ",")
		slices.Sort(a)
		slices.Sort(b)
		return slices.Equal(a, b)
	}
	return strings.EqualFold(is, want) || strings.TrimRight(is, "0.") == strings.TrimRight(want, "0.")
}
