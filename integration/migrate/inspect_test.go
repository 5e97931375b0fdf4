// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/schema/migrate"
)

// Some tables can be made under innodb_strict_mode = OFF alone: inspect says so, and a run
// fails. It says nothing of those that a run makes.
func TestInspectBlocksWhatAStrictServerDoesNotMake(t *testing.T) {
	var wide []string
	for i := range 40 {
		wide = append(wide, fmt.Sprintf("ADD c%d CHAR(240) CHARACTER SET latin1", i))
	}
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		loose := sql.OpenDB(settingConnector{s.source.Driver(), s.servers[0].DSN("shop"), []string{"SET SESSION innodb_strict_mode = OFF"}})
		defer func() { _ = loose.Close() }()
		database.Exec(t, loose, "CREATE TABLE kept LIKE orders")
		blocks := 0
		for name, change := range map[string]string{
			"rows too long":           strings.Join(wide, ", "),
			"long rows in partitions": "DROP INDEX code, " + strings.Join(wide, ", ") + " PARTITION BY HASH (id) PARTITIONS 3",
			"fixed partitions":        "DROP INDEX code, ROW_FORMAT = FIXED PARTITION BY HASH (id) PARTITIONS 3",
			"dynamic blocks":          "ROW_FORMAT = DYNAMIC KEY_BLOCK_SIZE = 8",
			"compressed":              "ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8, COMMENT 'KEY_BLOCK_SIZE=9'",
			"texts that are searched": "ADD FULLTEXT (note)",
			"plain":                   "COMMENT = 'ROW_FORMAT=FIXED'",
		} {
			database.Exec(t, loose, "DROP TABLE orders")
			database.Exec(t, loose, "CREATE TABLE orders LIKE kept")
			database.Exec(t, loose, "ALTER TABLE orders "+change)
			job := s.job(t, "id")
			found, err := job.Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			blocked := slices.ContainsFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.RowFormat && f.Severity == migrate.Block })
			err = job.Run(t.Context())
			if blocked != (err != nil) {
				t.Errorf("%s: blocked %t, and a run: %v; %+v", name, blocked, err, found)
			}
			blocks += map[bool]int{true: 1}[blocked]
			if err := job.Abort(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, shard := range s.shards {
				for _, table := range database.Texts(t, shard, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()") {
					database.Exec(t, shard, "DROP TABLE "+table)
				}
			}
		}
		if blocks < 3 {
			t.Errorf("%d changes of the table are blocked", blocks)
		}
	})
}

// Compressed tables cannot be tried with temporary ones: their blocks have to fit on the
// pages of a strict server, which may have other pages than the source.
func TestInspectBlocksCompressedTablesThatAStrictServerDoesNotMake(t *testing.T) {
	for _, shard := range []struct {
		flag, options string
		blocked       bool
	}{
		{"--innodb-page-size=4096", "ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8", true},
		{"--innodb-page-size=4096", "KEY_BLOCK_SIZE = 4", false},
		{"--innodb-page-size=4096", "ROW_FORMAT = COMPRESSED", false},
		{"--innodb-page-size=32768", "ROW_FORMAT = COMPRESSED", true},
		{"--innodb-file-per-table=OFF", "ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8", true},
	} {
		t.Run(shard.flag+" "+shard.options, func(t *testing.T) {
			t.Parallel()
			s := newMigrationShop(t, server.RunMariaDB(t), server.RunMariaDB(t, shard.flag))
			database.Exec(t, s.source, "ALTER TABLE orders "+shard.options)
			job := s.job(t, "id")
			found, err := job.Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			blocked := slices.ContainsFunc(found, func(f migrate.Finding) bool {
				return f.Code == migrate.RowFormat && f.Severity == migrate.Block && f.Database == "b"
			})
			if err := job.Run(t.Context()); blocked != shard.blocked || blocked != (err != nil) {
				t.Errorf("blocked %t, and a run: %v; %+v", blocked, err, found)
			}
		})
	}
}

// The codes are for programs, which read them in JSON.
func TestInspectSaysInCodesWhatServersAndTablesAreLike(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 5)
		for _, change := range []string{
			"ALTER TABLE orders ADD hidden INT DEFAULT 3 INVISIBLE",
			"ALTER TABLE orders DROP INDEX code",
			"ALTER TABLE orders PARTITION BY HASH (id) PARTITIONS 3",
		} {
			database.Exec(t, s.source, change)
		}
		database.Exec(t, s.shards["b"], "SET GLOBAL max_allowed_packet = 1048576, GLOBAL group_concat_max_len = 4321")
		begins(t, s.source)
		inAnHour := sql.OpenDB(settingConnector{s.source.Driver(), s.servers[0].DSN("shop"), []string{"SET timestamp = UNIX_TIMESTAMP() + 3600"}})
		defer func() { _ = inAnHour.Close() }()
		found, err := s.job(t, "id", func(c *migrate.Config) { c.Source = inAnHour }).Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`"code":"invisible_columns","severity":"info","database":"source","table":"orders","message":"the columns hidden are`,
			`"code":"partitions","severity":"warn","database":"source","table":"orders","message":"it is partitioned (3)`,
			`"code":"long_transactions","severity":"warn","database":"source","message":"a transaction has been open for 36`,
			`"code":"packet_size","severity":"warn","database":"b","message":"max_allowed_packet is 1048576, that of the source`,
			`"code":"settings","severity":"warn","database":"b","message":"group_concat_max_len is \"4321\", that of the source \"`,
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s is not in %s", want, text)
			}
		}
	})
}

// An INSERT of a generated id would fail on the shards, and a rollback on the source.
func TestPartitionsThatHaveNoPlaceForGeneratedIDsAreFound(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 5)
		database.Exec(t, s.source, "ALTER TABLE orders DROP INDEX code")
		for partitions, ends := range map[string]bool{
			"RANGE (id) (PARTITION low VALUES LESS THAN (1000))":                                                 true,
			"RANGE (id) (PARTITION low VALUES LESS THAN (1000), PARTITION others VALUES LESS THAN MAXVALUE)":     false,
			"RANGE COLUMNS (id) (PARTITION low VALUES LESS THAN (1000), PARTITION more VALUES LESS THAN (2000))": true,
			"LIST (id) (PARTITION few VALUES IN (1, 2, 3, 4, 5))":                                                true,
			"HASH (id) PARTITIONS 3": false,
			"KEY (id) PARTITIONS 3":  false,
		} {
			database.Exec(t, s.source, "ALTER TABLE orders PARTITION BY "+partitions)
			found, err := s.job(t, "id").Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(found, func(f migrate.Finding) bool { return f.Code == migrate.Partitions })
			if at < 0 || strings.Contains(found[at].Message, "no partition takes all other ids") != ends {
				t.Errorf("%s: %+v", partitions, found)
			}
		}
	})
}
