package integration_test

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

// The codes are for programs, which read them in JSON.
func TestInspectSaysInCodesWhatServersAndTablesAreLike(t *testing.T) {
	onShopServers(t, func(t *testing.T, s *migrationShop) {
		s.fill(t, 5)
		for _, change := range []string{
			"ALTER TABLE orders ADD hidden INT DEFAULT 3 INVISIBLE",
			"ALTER TABLE orders DROP INDEX code",
			"ALTER TABLE orders PARTITION BY HASH (id) PARTITIONS 3",
		} {
			mustExec(t, s.source, change)
		}
		mustExec(t, s.shards["b"], "SET GLOBAL max_allowed_packet = 1048576")
		tx, err := s.source.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET note = 'open' WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
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
			`"code":"partitions","severity":"warn","database":"source","table":"orders","message":"it has 3 partitions`,
			`"code":"long_transactions","severity":"warn","database":"source","message":"a transaction has been open for 36`,
			`"code":"packet_size","severity":"warn","database":"b","message":"max_allowed_packet is 1048576, that of the source`,
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s is not in %s", want, text)
			}
		}
	})
}
