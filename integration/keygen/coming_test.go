// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"database/sql"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/cached"
	"github.com/shardid/shardid/keygen/segment"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
)

// check keeps the code of the pages short.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// leafAlloc is the table of Leaf's README.
const leafAlloc = "CREATE TABLE `leaf_alloc` (" +
	"`biz_tag` varchar(128) NOT NULL DEFAULT ''," +
	"`max_id` bigint(20) NOT NULL DEFAULT '1'," +
	"`step` int(11) NOT NULL," +
	"`description` varchar(256) DEFAULT NULL," +
	"`update_time` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP," +
	"PRIMARY KEY (`biz_tag`)) ENGINE=InnoDB"

// fromLeaf is the code of docs/from-leaf.md.
func fromLeaf(ctx context.Context, leafDB *sql.DB) *segment.Generator {
	store, err := sqlstore.New(ctx, leafDB)
	check(err)
	orders, err := segment.New(ctx, segment.Config{Source: store.Tag("order")})
	check(err)
	return orders
}

// besideLeafSnowflake is the code of docs/from-leaf.md.
func besideLeafSnowflake(ctx context.Context) *snowflake.Generator {
	ids, err := snowflake.New(ctx, snowflake.Config{
		Layout: keygen.Twitter(),
		Worker: workerid.Static(512), // 512 to 1023, a different one for each process, as long as Leaf runs
	})
	check(err)
	return ids
}

// uidLayout is the code of docs/from-uidgenerator.md.
func uidLayout() keygen.Layout {
	layout := keygen.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", 8*3600)), // epochStr "2026-01-01", +08:00
		Unit:  time.Second,
		Fields: []keygen.Field{
			{Kind: keygen.Time, Bits: 28},
			{Kind: keygen.Worker, Bits: 22},
			{Kind: keygen.Sequence, Bits: 13},
		},
	}
	return layout
}

// fromUIDGenerator is the code of docs/from-uidgenerator.md.
func fromUIDGenerator(ctx context.Context, uidDB *sql.DB, layout keygen.Layout) *cached.Generator {
	store, err := sqlstore.New(ctx, uidDB)
	check(err)
	ids, err := cached.New(ctx, cached.Config{Layout: layout, Worker: store.WorkerNode("web-1", "8080")})
	check(err)
	return ids
}

func TestThePagesFromLeafAndUidGeneratorShowCodeThatRuns(t *testing.T) {
	source, err := os.ReadFile("coming_test.go")
	if err != nil {
		t.Fatal(err)
	}
	runs := strings.ReplaceAll(string(source), "\n\t", "\n")
	for page, want := range map[string]int{"from-leaf.md": 2, "from-uidgenerator.md": 2} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "\n```go\n")[1:]
		if len(blocks) != want {
			t.Errorf("%s has %d blocks of Go, want %d", page, len(blocks), want)
		}
		for _, rest := range blocks {
			block, _, closed := strings.Cut(rest, "```\n")
			if !closed || !strings.Contains(runs, block) {
				t.Errorf("%s: no test runs these lines:\n%s", page, block)
			}
		}
	}
}

// theirLeaf reserves a segment by the statements of Leaf's IDAllocDaoImpl, in one
// transaction, and counts through it as its SegmentIDGenImpl does.
func theirLeaf(ctx context.Context, db *sql.DB) (ids []int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", "order"); err != nil {
		return nil, err
	}
	var maxID, step int64
	if err := tx.QueryRowContext(ctx, "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?", "order").Scan(&maxID, &step); err != nil {
		return nil, err
	}
	for id := maxID - step; id < maxID; id++ {
		ids = append(ids, id)
	}
	return ids, tx.Commit()
}

func TestLeafAndOursReserveFromTheSameRowAtOnce(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db := s.Open(t, "leaf")
		database.Exec(t, db, leafAlloc)
		database.Exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('order', 1, 20, 'orders')")
		ours := fromLeaf(t.Context(), db)
		defer func() { _ = ours.Close() }()
		mine, others := together(t,
			func() []int64 { return someIDs(t, ours, 50) },
			func(int) ([]int64, error) { return theirLeaf(t.Context(), db) }, 50)
		mustDiffer(t, mine, others)
		all := slices.Concat(mine, others)
		if last := database.MustNumber(t, db, "SELECT max_id FROM leaf_alloc"); slices.Min(all) != 1 || last <= slices.Max(all) {
			t.Errorf("ids from %d to %d, and max_id is %d", slices.Min(all), slices.Max(all), last)
		}
	})
}

func TestIDsBesideLeafSnowflakeHaveWorkerIDsThatLeafDoesNotReach(t *testing.T) {
	ids := besideLeafSnowflake(t.Context())
	defer func() { _ = ids.Close() }()
	parts := parsed(t, keygen.Twitter(), someIDs(t, ids, 1)[0])
	if worker := parts.Datacenter<<5 | parts.Worker; worker != 512 {
		t.Errorf("the worker id is %d", worker)
	}
}

// workerNode is the table of UidGenerator's README.
const workerNode = "CREATE TABLE WORKER_NODE (" +
	"ID BIGINT NOT NULL AUTO_INCREMENT COMMENT 'auto increment id'," +
	"HOST_NAME VARCHAR(64) NOT NULL COMMENT 'host name'," +
	"PORT VARCHAR(64) NOT NULL COMMENT 'port'," +
	"TYPE INT NOT NULL COMMENT 'node type: CONTAINER(1), ACTUAL(2), FAKE(3)'," +
	"LAUNCH_DATE DATE NOT NULL COMMENT 'launch date'," +
	"MODIFIED TIMESTAMP NOT NULL COMMENT 'modified time'," +
	"CREATED TIMESTAMP NOT NULL COMMENT 'created time'," +
	"PRIMARY KEY(ID)) COMMENT='DB WorkerID Assigner for UID Generator',ENGINE = INNODB"

// theirUIDGenerator starts as UidGenerator's DisposableWorkerIdAssigner does, and makes ids
// of this second by the shifts of its BitsAllocator.
func theirUIDGenerator(ctx context.Context, db *sql.DB, epoch time.Time) (ids []int64, err error) {
	result, err := db.ExecContext(ctx, "INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES (?, ?, ?, CURDATE(), NOW(), NOW())",
		"10.0.0.7", "1700000000000-42", 2)
	if err != nil {
		return nil, err
	}
	worker, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	seconds := time.Now().Unix() - epoch.Unix()
	for sequence := range int64(20) {
		ids = append(ids, seconds<<35|worker<<13|sequence)
	}
	return ids, nil
}

func TestUidGeneratorAndOursTakeWorkerIDsFromTheSameTableAtOnce(t *testing.T) {
	onSharedMariaDBAndMySQL(t, func(t *testing.T, s database.Server) {
		db, layout := s.Open(t, "uid"), uidLayout()
		database.Exec(t, db, workerNode)
		var starts atomic.Int64
		mine, others := together(t,
			func() []int64 {
				starts.Add(1)
				ours := fromUIDGenerator(t.Context(), db, layout)
				defer func() { _ = ours.Close() }()
				return someIDs(t, ours, 20)
			},
			func(int) ([]int64, error) { starts.Add(1); return theirUIDGenerator(t.Context(), db, layout.Epoch) }, 10)
		mustDiffer(t, mine, others)
		workers := map[int64]bool{}
		for _, id := range slices.Concat(mine, others) {
			workers[parsed(t, layout, id).Worker] = true
		}
		if rows := database.MustNumber(t, db, "SELECT COUNT(*) FROM WORKER_NODE"); rows != starts.Load() || int64(len(workers)) != rows {
			t.Errorf("%d rows and %d worker ids of %d starts", rows, len(workers), starts.Load())
		}
	})
}
