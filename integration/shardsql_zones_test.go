// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// loadZone gives a server a time zone that is two hours before UTC, and since 2025-03-30 01:00 three.
func loadZone(t *testing.T, on *sql.DB, name string) {
	t.Helper()
	var loaded int
	if err := on.QueryRow("SELECT COUNT(*) FROM mysql.time_zone_name WHERE Name = ?", name).Scan(&loaded); err != nil {
		t.Fatal(err)
	}
	if loaded > 0 {
		return
	}
	r, err := on.Exec("INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')")
	if err != nil {
		t.Fatal(err)
	}
	id, err := r.LastInsertId()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"INSERT INTO mysql.time_zone_transition_type VALUES (?, 0, 7200, 0, 'T'), (?, 1, 10800, 1, 'TS')",
		"INSERT INTO mysql.time_zone_transition VALUES (?, 0, 0), (?, 1743296400, 1)",
	} {
		if _, err := on.Exec(text, id, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := on.Exec("INSERT INTO mysql.time_zone_name VALUES (?, ?)", name, id); err != nil {
		t.Fatal(err)
	}
}

const visitColumns = "id BIGINT NOT NULL PRIMARY KEY, user_id BIGINT NOT NULL, at DATETIME(3) NULL"

// A report by local days or hours has the rows of one table.
func TestRowsOfAllShardsAreGroupedByTheDaysOfATimeZone(t *testing.T) {
	const zone = "Test/Summer"
	for name, open := range writing(t) {
		t.Run(name, func(t *testing.T) {
			routed, whole := spreadTwins(t, open, "visits", "user_id", visitColumns)
			loadZone(t, whole, zone)
			for id, at := range []any{"2025-03-29 21:59:59.5", "2025-03-29 22:00:00", "2025-03-30 00:30:00", "2025-03-30 01:00:00", "2025-03-30 20:59:59.999", "2025-03-30 21:00:00", "2026-01-01 00:00:00", "2025-12-31 23:59:59", nil, "2025-12-29 12:00:00"} {
				for _, db := range []*sql.DB{routed, whole} {
					if _, err := db.Exec("INSERT INTO visits (id, user_id, at) VALUES (?, ?, ?)", id, id%5, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, c := range []struct {
				text string
				args []any
			}{
				{"SELECT DATE(CONVERT_TZ(at, '+00:00', '+08:00')) AS day, COUNT(*) FROM visits GROUP BY day ORDER BY day", nil},
				{"SELECT DATE(CONVERT_TZ(at, '+00:00', 'Test/Summer')) AS day, COUNT(*), COUNT(DISTINCT user_id) FROM visits GROUP BY day ORDER BY day DESC", nil},
				{"SELECT DATE(CONVERT_TZ(at, ?, ?)) AS day, COUNT(*) FROM visits GROUP BY day ORDER BY day", []any{"+00:00", zone}},
				{"SELECT id FROM visits WHERE DATE(CONVERT_TZ(at, '+00:00', ?)) = ? ORDER BY id", []any{zone, "2025-03-30"}},
				{"SELECT CONVERT_TZ(at, 'Test/Summer', '-05:30') AS there FROM visits ORDER BY there LIMIT 4", nil},
				{"SELECT MIN(CONVERT_TZ(at, '+00:00', 'Test/Summer')), MAX(CONVERT_TZ(at, '+00:00', '+14:00')) FROM visits", nil},
				{"SELECT DATE_FORMAT(CONVERT_TZ(at, '+00:00', 'Test/Summer'), '%Y-%m-%dT%H:00:00Z') AS hour, COUNT(*) FROM visits GROUP BY hour ORDER BY hour DESC", nil},
				{"SELECT DATE_FORMAT(at, '%x-W%v') AS week, COUNT(*) FROM visits GROUP BY week ORDER BY week", nil},
				{"SELECT DATE_FORMAT(at, '%X %V %u %U') AS week, COUNT(*) FROM visits GROUP BY week ORDER BY week DESC", nil},
				{"SELECT HOUR(CONVERT_TZ(at, '+00:00', ?)) AS hour, COUNT(*) FROM visits GROUP BY hour ORDER BY COUNT(*) DESC, hour LIMIT 3", []any{zone}},
				{"SELECT CONVERT_TZ(at, '+00:00', 'Nowhere/Else') AS there, COUNT(*) FROM visits GROUP BY there", nil},
			} {
				if got, want := rowTexts(t, routed, c.text, c.args...), rowTexts(t, whole, c.text, c.args...); !slices.Equal(got, want) {
					t.Errorf("%s:\n%q\nwant %q", c.text, got, want)
				}
			}
			for _, text := range []string{"SELECT CONVERT_TZ(at, 'SYSTEM', '+08:00') AS there FROM visits", "SELECT id FROM visits WHERE CONVERT_TZ(at, ?, '+00:00') IS NULL"} {
				if err := routed.QueryRow(text, slices.Repeat([]any{"system"}, strings.Count(text, "?"))...).Scan(new(any)); !errors.Is(err, sharding.ErrSettings) {
					t.Errorf("%s: %v", text, err)
				}
			}
		})
	}
}

// Of two servers, only one has loaded the zone.
func TestATimeZoneThatOneServerLacksIsRefused(t *testing.T) {
	const zone = "Test/Maria"
	dbs := sharding.DBs{}
	for name, open := range writing(t) {
		empty := open(t, "zones")
		if name == "MariaDB" {
			loadZone(t, empty, zone)
		}
		database.Exec(t, empty, "CREATE TABLE visits ("+visitColumns+")")
		empty.SetMaxOpenConns(1)
		for _, set := range []string{"sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'", "time_zone = '+00:00'", "NAMES utf8mb4 COLLATE utf8mb4_bin", "lc_time_names = 'en_US'", "max_sort_length = 1024", "group_concat_max_len = 1024"} {
			database.Exec(t, empty, "SET "+set)
		}
		dbs[strings.ToLower(name)] = empty
	}
	m, err := sharding.MapOf(sharding.Target{DB: "mariadb", Table: "visits"}, sharding.Target{DB: "mysql", Table: "visits"})
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "visits", Key: "user_id", Rule: sharding.Mod(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["mysql"]})
	defer func() { _ = routed.Close() }()
	const text = "SELECT COUNT(*) FROM visits WHERE CONVERT_TZ(at, '+00:00', ?) IS NULL"
	for where, want := range map[string]error{"": sharding.ErrSettings, " AND user_id = 0": nil, " AND user_id = 1": nil} {
		if err := routed.QueryRow(text+where, zone).Scan(new(int)); !errors.Is(err, want) {
			t.Errorf("%q: %v", where, err)
		}
	}
	if n := rows(t, routed, strings.Replace(text, "?", "'+08:00'", 1)); n != 0 {
		t.Errorf("%d rows", n)
	}
}
