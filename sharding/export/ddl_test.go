// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

func TestCitusGolden(t *testing.T) {
	out, err := export.Citus(router(t,
		inGroup(withGene(spread(t, "orders", "user_id", sharding.Low(10), 8), sharding.Low(10)), "orders"),
		inGroup(spread(t, "payments", "user_id", sharding.Low(10), 8), "orders"),
		spread(t, "events", "id", sharding.Hash(32), 4),
		sharding.Broadcast("regions")))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "citus", out)
}

func TestCitusRefusesGroupsThatOnlyTheSlotInAnIDKeepsTogether(t *testing.T) {
	_, err := export.Citus(router(t,
		inGroup(withGene(spread(t, "orders", "user_id", sharding.Low(4), 4), sharding.Low(4)), "g"),
		inGroup(spread(t, "items", "order_id", sharding.Low(4), 4), "g")))
	refused(t, err, "items", "give it a column user_id")
}

const ordersDDL = "CREATE TABLE `orders_03` (\n" +
	"  `id` bigint(20) NOT NULL AUTO_INCREMENT,\n" +
	"  `user_id` bigint(20) NOT NULL,\n" +
	"  `note` varchar(99) DEFAULT 'PRIMARY KEY (`id`)' COMMENT 'AUTO_INCREMENT, once',\n" +
	"  PRIMARY KEY (`id`) USING BTREE,\n" +
	"  KEY `u` (`user_id`)\n" +
	") ENGINE=InnoDB AUTO_INCREMENT=77 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

func TestTiDBGolden(t *testing.T) {
	out, err := export.TiDB(router(t, spread(t, "orders", "user_id", sharding.Low(10), 16)), map[string]string{"orders": ordersDDL})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tidb", out)
}

func TestTiDBSaysThatBroadcastTablesAreMissing(t *testing.T) {
	r := router(t, spread(t, "orders", "user_id", sharding.Low(10), 16), sharding.Broadcast("regions"))
	out, err := export.TiDB(r, map[string]string{"orders": ordersDDL})
	if err != nil || !strings.Contains(strings.Join(out.Notes, "\n"), "Broadcast tables") {
		t.Errorf("%v, %v", out.Notes, err)
	}
}

func TestTiDBRefusesDefinitionsItCannotTakeOverWhole(t *testing.T) {
	r := router(t, spread(t, "orders", "user_id", sharding.Low(10), 16))
	for says, definition := range map[string]string{
		"its columns are not known": "",
		"is not the output of":      strings.Replace(ordersDDL, "  PRIMARY KEY (`id`) USING BTREE,\n", "", 1),
		"no options":                ordersDDL + "\n PARTITION BY HASH (`id`)",
		"by hand":                   ordersDDL + " ROW_FORMAT=COMPRESSED",
		"SHOW CREATE":               "CREATE TABLE orders (id bigint primary key)",
	} {
		_, err := export.TiDB(r, map[string]string{"orders": definition})
		refused(t, err, "orders", says)
	}
}
