// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
)

func openFile(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "source.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// sends has a program send a statement some times.
func sends(p *sharding.Preview, times int, text string, becomes sharding.Change, err error) {
	for range times {
		if p.Count(text) {
			p.Add(text, becomes, err)
		}
	}
}

func start(t *testing.T, cfg preview.Config) *preview.Recorder {
	t.Helper()
	r, err := preview.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	return r
}

func read(t *testing.T, db *sql.DB) preview.Found {
	t.Helper()
	found, err := preview.Read(t.Context(), db, "autumn")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// lines are the statements in one line each.
func lines(f preview.Found) (all []string) {
	for _, s := range f.Statements {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", s.Times, s.Becomes, s.Text, s.Reason)))
	}
	return all
}

func TestFindingsOfAllProcessesAreInOneTable(t *testing.T) {
	db := openFile(t)
	var one, other sharding.Preview
	a := start(t, preview.Config{Source: db, Preview: &one})
	b := start(t, preview.Config{Source: db, Preview: &other})
	noKey := &sharding.RouteError{Op: "update", Table: "orders", Err: fmt.Errorf("%w: 'secret'", sharding.ErrMissingKey), Hint: "add a condition"}
	sends(&one, 3, "SELECT COUNT(*) FROM orders", sharding.SeveralShards, nil)
	sends(&other, 4, "SELECT COUNT(*) FROM orders", sharding.SeveralShards, nil)
	sends(&other, 2, "UPDATE orders SET note = ?", sharding.WillBeRefused, noKey)
	for _, r := range []*preview.Recorder{a, b, a} {
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	found := read(t, db)
	want := []string{"2 refused UPDATE orders SET note = ? sharding: update orders refused: no sharding key; add a condition", "7 several shards SELECT COUNT(*) FROM orders"}
	if got := lines(found); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if found.Recorded == nil || time.Since(*found.Recorded).Abs() > time.Hour || found.Refused() != 1 || found.Looked != nil || found.Unseen != 1 {
		t.Errorf("%+v", found)
	}
}

func TestTheWorstOutcomeOfAStatementInAnyProcessCounts(t *testing.T) {
	db := openFile(t)
	var one, other sharding.Preview
	a := start(t, preview.Config{Source: db, Preview: &one})
	b := start(t, preview.Config{Source: db, Preview: &other})
	sends(&one, 1, "s", sharding.WillBeRefused, errors.New("because"))
	sends(&other, 1, "s", sharding.LooksFirst, nil)
	for _, r := range []*preview.Recorder{a, b} {
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(lines(read(t, db))); got != "[2 refused s because]" {
		t.Error(got)
	}
}

func TestAReadPreviewIsStoredUntilMoreIsFound(t *testing.T) {
	db := openFile(t)
	if found := read(t, db); found.Recorded != nil || found.Looked != nil || found.Unseen != 0 {
		t.Errorf("of a source without tables: %+v", found)
	}
	var p sharding.Preview
	r := start(t, preview.Config{Source: db, Preview: &p})
	sends(&p, 1, "one", sharding.WillBeRefused, nil)
	look := func(unseenBefore int64) {
		t.Helper()
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		found := read(t, db)
		if found.Unseen != unseenBefore {
			t.Errorf("%d are unseen, want %d", found.Unseen, unseenBefore)
		}
		if err := preview.NoteLook(t.Context(), db, "autumn", found); err != nil {
			t.Fatal(err)
		}
		if found := read(t, db); found.Looked == nil || found.Unseen != 0 {
			t.Errorf("after a look: %+v", found)
		}
	}
	look(1)
	sends(&p, 5, "one", sharding.WillBeRefused, nil)
	sends(&p, 5, "several", sharding.SeveralShards, nil)
	look(0)
	sends(&p, 1, "two", sharding.WillBeRefused, nil)
	sends(&p, 1, "several", sharding.WillBeRefused, nil)
	sends(&p, 100, "several", sharding.WillBeRefused, nil)
	look(2)
	if found, err := preview.Read(t.Context(), db, "another"); err != nil || found.Looked != nil || found.Unseen != 3 {
		t.Errorf("of another job: %+v, %v", found, err)
	}
}

func TestAReadPreviewCanBeStoredBeforeAnythingIsRecorded(t *testing.T) {
	db := openFile(t)
	if err := preview.NoteLook(t.Context(), db, "autumn", preview.Found{}); err != nil {
		t.Fatal(err)
	}
	if found := read(t, db); found.Looked == nil || found.Recorded != nil {
		t.Errorf("%+v", found)
	}
}

func TestARecorderWritesAgainWhatCouldNotBeWritten(t *testing.T) {
	db := openFile(t)
	var p sharding.Preview
	failed := make(chan error, 1000)
	start(t, preview.Config{Source: db, Preview: &p, Every: time.Millisecond, Failed: func(err error) {
		select {
		case failed <- err:
		default:
		}
	}})
	// A view cannot be written. In two steps the recorder could create the table in between.
	exec(t, db, "BEGIN IMMEDIATE; ALTER TABLE shardid_preview RENAME TO kept; CREATE VIEW shardid_preview AS SELECT 1 AS one; COMMIT")
	sends(&p, 9, "one", sharding.SeveralShards, nil)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "write shardid_preview") {
		t.Error(err)
	}
	exec(t, db, "DROP VIEW shardid_preview")
	testwait.Until(t, "what failed is written", func() bool { return fmt.Sprint(lines(read(t, db))) == "[9 several shards one]" })
}

func exec(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestARecorderIsRefusedWithoutWhatItNeeds(t *testing.T) {
	db := openFile(t)
	for want, cfg := range map[string]preview.Config{
		"Source is nil":  {Preview: new(sharding.Preview)},
		"Preview is nil": {Source: db},
		"below zero":     {Source: db, Preview: new(sharding.Preview), Every: -1},
	} {
		if _, err := preview.Start(t.Context(), cfg); !errors.Is(err, preview.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	_ = db.Close()
	if _, err := preview.Start(t.Context(), preview.Config{Source: db, Preview: new(sharding.Preview)}); err == nil {
		t.Error("started on a database that is closed")
	}
}
