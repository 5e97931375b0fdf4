// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/shardid/shardid/integration/server"
)

// The command reads the general logs that the servers write, with the values of
// prepared statements.
func TestRoutePlansTheGeneralLogsOfServers(t *testing.T) {
	program := server.Command(t)
	for name, run := range map[string]func(t *testing.T, flags ...string) *sql.DB{
		"MariaDB": func(t *testing.T, flags ...string) *sql.DB { return server.RunMariaDB(t, flags...).Open(t, "shop") },
		"MySQL":   func(t *testing.T, flags ...string) *sql.DB { return server.RunMySQL(t, flags...).Open(t, "shop") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log, config := filepath.Join(dir, "general.log"), filepath.Join(dir, "shards.json")
			db := run(t, "--general-log=1", "--general-log-file="+log, "--log-output=FILE")
			for _, q := range []struct {
				text string
				args []any
			}{
				{"CREATE TABLE orders (id BIGINT PRIMARY KEY, user_id BIGINT, note TEXT)", nil},
				{"INSERT INTO orders (id, user_id, note)\nVALUES (?, ?, ?)", []any{1, 7, "two\nlines"}},
				{"UPDATE orders SET note = 'x' WHERE user_id = 7 AND id = 1", nil},
				{"UPDATE orders SET note = ? WHERE id < ?", []any{"y", 2}},
				{"DELETE FROM orders WHERE user_id IN (?, ?)", []any{7, 7}},
			} {
				if _, err := db.ExecContext(t.Context(), q.text, q.args...); err != nil {
					t.Fatal(err)
				}
			}
			layout := `{"databases": {"a": {"sqlite": "a.db"}}, "tables": [{"name": "orders", "key": "user_id", "rule": "low(2)",
				"spread": {"databases": ["a"], "tables": 4, "pattern": "orders_%d"}}]}`
			if err := os.WriteFile(config, []byte(layout), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), program, "route", "--config", config, "--log", log, "--json").Output()
			var failed *exec.ExitError
			if !errors.As(err, &failed) || failed.ExitCode() != 1 { // statements are refused
				t.Fatal(err)
			}
			var report struct {
				Kinds   map[string]int
				Refused []struct{ Example string }
			}
			if err := json.Unmarshal(out, &report); err != nil {
				t.Fatal(err)
			}
			// CREATE TABLE names the table and is refused, as is the update without the key.
			if report.Kinds["one"] != 3 || report.Kinds["refused"] != 2 || report.Kinds["scatter"] != 0 {
				t.Errorf("%s", out)
			}
		})
	}
}
