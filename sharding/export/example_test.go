// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

// A table that is sharded by the low bits of its key has an exact equivalent in Vitess, whose
// shards are in bit-reversed order. A table with a modulo that is not a power of 2 has none.
func ExampleVitess() {
	for _, test := range []struct {
		rule   sharding.Rule
		tables int
	}{{sharding.Low(10), 4}, {sharding.Mod(6), 3}} {
		orders, err := sharding.Spread([]string{"east"}, test.tables, "orders_%d")
		if err != nil {
			fmt.Println(err)
			return
		}
		router, err := sharding.New(sharding.DBs{"east": new(sql.DB)},
			sharding.Table{Name: "orders", Key: "user_id", Rule: test.rule, Map: orders})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := export.Vitess(router, export.VitessConfig{Keyspace: "shop"})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Print(out.Files[1].Name, ": ", out.Files[1].Text)
	}
	// Output:
	// shards.json: [
	//   {
	//     "shard": "-40",
	//     "tables": {
	//       "orders": "east/orders_0"
	//     }
	//   },
	//   {
	//     "shard": "40-80",
	//     "tables": {
	//       "orders": "east/orders_2"
	//     }
	//   },
	//   {
	//     "shard": "80-c0",
	//     "tables": {
	//       "orders": "east/orders_1"
	//     }
	//   },
	//   {
	//     "shard": "c0-",
	//     "tables": {
	//       "orders": "east/orders_3"
	//     }
	//   }
	// ]
	// export: vitess: table orders: no exact equivalent: its targets repeat every 3 slots, but Vitess divides its ranges by powers of 2; store the slot in a column of the table and name it in Buckets
}

func ExampleShardingSphere() {
	orders, err := sharding.Spread([]string{"east", "west"}, 4, "orders_%02d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(10), Map: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := export.ShardingSphere(router)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(out.Files[0].Text)
	// Output:
	// rules:
	// - !SHARDING
	//   tables:
	//     orders:
	//       actualDataNodes: east.${['orders_00', 'orders_02']},west.${['orders_01', 'orders_03']}
	//       databaseStrategy:
	//         standard:
	//           shardingColumn: user_id
	//           shardingAlgorithmName: orders_database
	//       tableStrategy:
	//         standard:
	//           shardingColumn: user_id
	//           shardingAlgorithmName: orders_table
	//       auditStrategy:
	//         auditorNames:
	//         - sharding_key_required
	//         allowHintDisable: false
	//   shardingAlgorithms:
	//     orders_database:
	//       type: INLINE
	//       props:
	//         algorithm-expression: '${[''east'', ''west''][((user_id % 2 + 2) % 2).intValue()]}'
	//     orders_table:
	//       type: INLINE
	//       props:
	//         algorithm-expression: 'orders_${((user_id % 4 + 4) % 4).toString().padLeft(2, ''0'')}'
	//   auditors:
	//     sharding_key_required:
	//       type: DML_SHARDING_CONDITIONS
}

// Citus and TiDB place rows themselves; they need only the tables.
func ExampleCitus() {
	orders, err := sharding.Spread([]string{"east"}, 4, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	citus, err := export.Citus(router)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(citus.Files[0].Text)
	tidb, err := export.TiDB(router, map[string]string{
		"orders": "CREATE TABLE `orders_0` (\n  `id` bigint NOT NULL,\n  `user_id` bigint NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(tidb.Files[0].Text)
	// Output:
	// SELECT create_distributed_table('"orders"', 'user_id', colocate_with => 'none', shard_count => 4);
	// CREATE TABLE `orders` (
	//   `id` bigint NOT NULL,
	//   `user_id` bigint NOT NULL,
	//   PRIMARY KEY (`id`) NONCLUSTERED
	// ) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin SHARD_ROW_ID_BITS=2 PRE_SPLIT_REGIONS=2;
}

// One PostgreSQL reads the shards without moving rows. psql executes the statements.
func ExampleFDW() {
	orders, err := sharding.Spread([]string{"east", "west"}, 2, "orders_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(2), Map: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := export.FDW(router)
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(out.Files[0].Text) {
		if strings.Contains(line, "PARTITION") {
			fmt.Print(line)
		}
	}
	fmt.Println(out.Notes[0])
	// Output:
	// CREATE TABLE shards."orders" (LIKE "shards_east"."orders_0") PARTITION BY LIST (shards."orders_slot"("user_id"));
	// ALTER TABLE shards."orders" ATTACH PARTITION "shards_east"."orders_0" FOR VALUES IN (0);
	// ALTER TABLE shards."orders" ATTACH PARTITION "shards_west"."orders_1" FOR VALUES IN (1);
	// A query on orders with user_id = 5 AND shards.orders_slot(user_id) = shards.orders_slot(5) queries one shard; any other query reads all shards.
}

// The rule must be one by which MariaDB can partition.
func ExampleSpider() {
	users, err := sharding.Spread([]string{"east", "west"}, 2, "users_%d")
	if err != nil {
		fmt.Println(err)
		return
	}
	router, err := sharding.New(sharding.DBs{"east": new(sql.DB), "west": new(sql.DB)},
		sharding.Table{Name: "users", Key: "email", Rule: sharding.HashText(2), Map: users})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := export.Spider(context.Background(), router); err != nil {
		fmt.Println(err)
	}
	// Output:
	// export: spider: table users: no exact equivalent: MariaDB permits no function in PARTITION BY that computes the slots of its rule; read its shards one by one, or all through shardsql
}
