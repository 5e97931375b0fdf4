// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/shardid/shardid/schema"
)

func TestApplyMakesTheTablesAndChangesNothingAgain(t *testing.T) {
	db := newDB(t)
	for range 2 {
		if err := schema.Apply(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, db, `INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('h', '1', 1, '2024-01-02', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)`)
	exec(t, db, `INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 10)`)
	if got := scan[int64](t, db, "SELECT max_id FROM leaf_alloc"); got != 1 {
		t.Errorf("max_id defaults to %d", got)
	}
}

func TestApplyMakesTheHeaderOfLeasesOnceAndNotAgain(t *testing.T) {
	db := newDB(t)
	for want := 1; want >= 0; want-- {
		if err := schema.Apply(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if got := scan[int](t, db, "SELECT COUNT(*) FROM worker_namespace WHERE namespace = ''"); got != want {
			t.Errorf("%d headers, want %d", got, want)
		}
		exec(t, db, "DELETE FROM worker_namespace") // lost
	}
}

// namespaceBefore is the table of versions that stored no layout.
const namespaceBefore = `CREATE TABLE "worker_namespace" (
  "namespace"    VARCHAR(64)  NOT NULL PRIMARY KEY,
  "epoch_us"     BIGINT       NOT NULL,
  "unit_ns"      BIGINT       NOT NULL,
  "identity"     VARCHAR(128) NOT NULL,
  "longest_us"   BIGINT       NOT NULL,
  "safe_from_us" BIGINT       NOT NULL
)`

func TestApplyAddsTheColumnThatATableOfAVersionBeforeLacks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	db := open(t, file)
	exec(t, db, namespaceBefore)
	exec(t, db, "INSERT INTO worker_namespace VALUES ('shop', 1, 1000000, '', 0, 0)")
	atOnce(t, 8, func(int) error { return schema.Apply(t.Context(), open(t, file)) })
	if layout := scan[string](t, db, "SELECT layout FROM worker_namespace WHERE namespace = 'shop'"); layout != "" {
		t.Errorf("the layout of an old row is %q", layout)
	}
	if unit := scan[int64](t, db, "SELECT unit_ns FROM worker_namespace WHERE namespace = 'shop'"); unit != 1_000_000 {
		t.Errorf("the unit of an old row is %d", unit)
	}
	exec(t, db, "INSERT INTO worker_namespace (namespace, epoch_us, unit_ns, identity, longest_us, safe_from_us) VALUES ('old', 1, 1000, '', 0, 0)")
}

func TestApplyThatMayNotAddTheColumnNamesTheStatement(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	if err := schema.Apply(t.Context(), open(t, file)); err != nil {
		t.Fatal(err)
	}
	exec(t, open(t, file), "ALTER TABLE worker_namespace DROP COLUMN layout")
	err := schema.Apply(t.Context(), open(t, "file:"+file+"?_pragma=query_only(1)"))
	if err == nil || !strings.Contains(err.Error(), "run ALTER TABLE worker_namespace ADD COLUMN layout") {
		t.Errorf("%v", err)
	}
}

func TestDDLRunByHandIsWhatApplyWants(t *testing.T) {
	db := newDB(t)
	text, err := schema.DDL("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, db, text)
	before := scan[int64](t, db, "PRAGMA schema_version")
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if after := scan[int64](t, db, "PRAGMA schema_version"); after != before {
		t.Error("Apply changed the schema")
	}
}

func TestApplyFromManyPoolsAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	atOnce(t, 8, func(int) error { return schema.Apply(t.Context(), open(t, file)) })
}

func TestApplyWorksWithAPoolOfOneConnection(t *testing.T) {
	db := open(t, ":memory:")
	db.SetMaxOpenConns(1)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if got := scan[int](t, db, "SELECT COUNT(*) FROM leaf_alloc"); got != 0 {
		t.Errorf("%d rows", got)
	}
}

func TestApplyTakesALeafTableWithOtherColumns(t *testing.T) {
	db := newDB(t)
	exec(t, db, `CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id BIGINT, step INT, "desc" TEXT, update_time TIMESTAMP, extra TEXT)`)
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
}

func TestApplyRefusesATableThatCannotServe(t *testing.T) {
	for create, column := range map[string]string{
		"CREATE TABLE leaf_alloc (biz_tag TEXT, max_id BIGINT, step INT, update_time TIMESTAMP)":                      "biz_tag",
		"CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, step INT, update_time TIMESTAMP)":                         "max_id",
		"CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id TEXT, step INT, update_time TIMESTAMP)":            "max_id",
		"CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id BIGINT, step INT)":                                 "update_time",
		"CREATE TABLE WORKER_NODE (ID BIGINT PRIMARY KEY, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)":     "ID",
		"CREATE TABLE WORKER_NODE (ID INTEGER PRIMARY KEY, HOST_NAME TEXT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)":     "PORT",
		"CREATE TABLE WORKER_NODE (ID INTEGER, HOST_NAME TEXT, PORT TEXT, TYPE INT, LAUNCH_DATE, MODIFIED, CREATED)":  "ID",
		"CREATE TABLE worker_lease (namespace TEXT PRIMARY KEY, worker_id BIGINT)":                                    "namespace, worker_id",
		"CREATE TABLE worker_node (id TEXT PRIMARY KEY, HOST_NAME TEXT, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED);": "ID",
	} {
		db := newDB(t)
		exec(t, db, create)
		var refused *schema.ColumnError
		err := schema.Apply(t.Context(), db)
		if !errors.As(err, &refused) || refused.Column != column || !strings.Contains(create, refused.Table) && !strings.Contains(create, "worker_node") {
			t.Errorf("%s:\n%v", create, err)
		}
		missing := !strings.Contains(column, ",") && column != "biz_tag" && column != "ID" && !strings.Contains(create, column+" ")
		if says := strings.Contains(fmt.Sprint(err), "or this user may not see it"); says != missing {
			t.Errorf("%s: it says that the column may be hidden: %t\n%v", create, says, err)
		}
	}
}

func TestApplyDoesNotTakeAViewForATable(t *testing.T) {
	db := newDB(t)
	exec(t, db, "CREATE VIEW leaf_alloc AS SELECT 1")
	if err := schema.Apply(t.Context(), db); err == nil || !strings.Contains(err.Error(), "leaf_alloc") {
		t.Errorf("Apply: %v", err)
	}
}

// atOnce runs f n times, concurrently.
func atOnce(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			if err := f(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
}
