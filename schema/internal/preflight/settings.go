// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Package shardsql refuses a database whose sessions have another value of one of these. A
// program may set them in its data source names, which a migration does not know.
const (
	mysqlPreset = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('sql_mode', 'time_zone', 'system_time_zone', 'max_sort_length', 'div_precision_increment'," +
		" 'lc_time_names', 'default_week_format', 'group_concat_max_len')"
	postgresPreset = "SELECT name, reset_val FROM pg_settings WHERE name IN ('TimeZone', 'DateStyle', 'IntervalStyle', 'standard_conforming_strings', 'server_encoding')" +
		" UNION ALL SELECT 'the collation', datcollate || ' ' || datctype FROM pg_database WHERE datname = current_database()"
)

// settings compares the settings with which connections to a shard begin to those of the
// source, where it reads them.
func (p serverProbe) settings(ctx context.Context) error {
	query := mysqlPreset
	if p.Database.Name() == "postgres" {
		query = postgresPreset
	}
	found := map[string]string{}
	err := p.Each(ctx, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		found[name] = value
		return err
	}, query)
	if err != nil {
		return err
	}
	if zone := found["system_time_zone"]; found["time_zone"] == "SYSTEM" {
		found["time_zone"] = zone
	}
	delete(found, "system_time_zone")
	if slices.Contains([]string{"+00:00", "Etc/UTC"}, found["time_zone"]) {
		found["time_zone"] = "UTC"
	}
	if p.Database.Label == "source" {
		p.inspection.preset = found
		return nil
	}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if here := p.inspection.preset[name]; here != found[name] {
			differ = append(differ, fmt.Sprintf("%s is %q, that of the source %q", name, found[name], here))
		}
	}
	if len(differ) > 0 {
		p.add(Settings, Warn, strings.Join(differ, "; "), "set them to the same values on all servers, or in all data source names of the programs: from the switch on, routers refuse statements for a database that has others")
	}
	return nil
}
