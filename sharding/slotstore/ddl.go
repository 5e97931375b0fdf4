// SPDX-License-Identifier: Apache-2.0

package slotstore

import (
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// mapDDL has the tables in the database of the map, with names in double quotes. %s ends a table's
// definition.
var mapDDL = []string{
	`CREATE TABLE IF NOT EXISTS "shard_map" (
  "name"    VARCHAR(64) NOT NULL PRIMARY KEY,
  "version" BIGINT      NOT NULL,
  "slots"   INT         NOT NULL
)%s`,
	`CREATE TABLE IF NOT EXISTS "shard_slot" (
  "name"    VARCHAR(64) NOT NULL,
  "slot"    INT         NOT NULL,
  "state"   VARCHAR(8)  NOT NULL,
  "shard"   INT         NOT NULL,
  "other"   INT         NOT NULL,
  "version" BIGINT      NOT NULL,
  PRIMARY KEY ("name", "slot")
)%s`,
	`CREATE TABLE IF NOT EXISTS "shard_lease" (
  "name"       VARCHAR(64)  NOT NULL,
  "holder"     VARCHAR(128) NOT NULL,
  "version"    BIGINT       NOT NULL,
  "expires_us" BIGINT       NOT NULL,
  PRIMARY KEY ("name", "holder")
)%s`,
}

// fenceDDL is the table in the database of each shard from or to which slots have moved: the slots
// whose writes the shard refuses, and since which version.
const fenceDDL = `CREATE TABLE IF NOT EXISTS "shard_fence" (
  "name"    VARCHAR(64) NOT NULL,
  "shard"   INT         NOT NULL,
  "slot"    INT         NOT NULL,
  "fenced"  INT         NOT NULL,
  "version" BIGINT      NOT NULL,
  PRIMARY KEY ("name", "shard", "slot")
)%s`

// fenceTableDDL is a table in the same databases: the tables with fences, and the names of the maps that assign their slots. Package
// shardsql reads it for programs that do not follow a map; triggers are hidden from most users of MySQL and MariaDB.
const fenceTableDDL = `CREATE TABLE IF NOT EXISTS "shard_fence_table" (
  "table_name" VARCHAR(64) NOT NULL PRIMARY KEY,
  "name"       VARCHAR(64) NOT NULL
)%s`

// ending returns the options of a table. The fences rely on row locks, which only InnoDB has. Names
// must differ in case only if they differ in Go.
func ending(server dialect.Server) string {
	if server.Name() == "mysql" {
		return " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
	}
	return ""
}

// now returns the time in microseconds since 1970, by the database's clock.
func now(server dialect.Server) string {
	switch server.Name() {
	case "mysql":
		return `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`
	case "postgres":
		return `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)`
	}
	return `(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)`
}

// upsert completes an INSERT for rows that may exist: it does nothing, or sets columns to the new
// values.
func upsert(server dialect.Server, key string, set ...string) string {
	clause, value := ` ON CONFLICT (`+key+`) DO UPDATE SET `, `excluded."%s"`
	switch {
	case server.Name() == "mysql" && len(set) == 0:
		return ` ON DUPLICATE KEY UPDATE "name" = "name"`
	case server.Name() == "mysql":
		clause, value = ` ON DUPLICATE KEY UPDATE `, `VALUES("%s")`
	case len(set) == 0:
		return ` ON CONFLICT (` + key + `) DO NOTHING`
	}
	settings := make([]string, len(set))
	for i, column := range set {
		settings[i] = `"` + column + `" = ` + fmt.Sprintf(value, column)
	}
	return clause + strings.Join(settings, ", ")
}
