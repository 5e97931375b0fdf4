// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/keygen/workerid"
)

// answer is TiDB's answer to a statement that contains a text. The tests of
// integration/tidb use a real server.
type answer struct {
	to   string
	rows *sqlmock.Rows
}

// one is an answer of one row, and of none without values.
func one(to string, values ...driver.Value) answer {
	if len(values) == 0 {
		return answer{to, sqlmock.NewRows([]string{"Variable_name", "Value"})}
	}
	return answer{to, sqlmock.NewRows(make([]string, len(values))).AddRow(values...)}
}

// tidbIs are its answers to the queries that identify a server.
func tidbIs() []answer {
	return []answer{
		one("SELECT VERSION()", "8.0.11-TiDB-v8.5.2"),
		one("SHOW GLOBAL VARIABLES"),
		one("select @@version_comment limit 1", "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible"),
	}
}

// onTiDB opens a store on recorded answers, in the order in which they are asked for.
func onTiDB(t *testing.T) (sqlmock.Sqlmock, *sqlstore.Store) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(expected, actual string) error {
		if !strings.Contains(actual, expected) {
			return errors.New("unexpected " + actual)
		}
		return nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
		mock.ExpectClose()
		_ = db.Close()
	})
	expect(mock, tidbIs()...)
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return mock, store
}

func expect(mock sqlmock.Sqlmock, all ...answer) {
	for _, a := range all {
		mock.ExpectQuery(a.to).WillReturnRows(a.rows)
	}
}

func TestWhatTiDBCannotDoIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	for what, use := range map[string]struct {
		instead string
		try     func(t *testing.T, s *sqlstore.Store) error
	}{
		"a guarded tag": {"use Tag", func(t *testing.T, s *sqlstore.Store) error {
			_, err := s.GuardedTag("orders").Reserve(t.Context(), 10)
			return err
		}},
		"a lease": {"WorkerNode", func(t *testing.T, s *sqlstore.Store) error {
			_, err := s.Leases().Take(t.Context(), workerid.Claim{Namespace: "shop", Owner: "o", Most: 3, Layout: keygen.Twitter(), Term: time.Minute})
			return err
		}},
	} {
		_, store := onTiDB(t)
		var setup *keygen.SetupError
		err := use.try(t, store)
		if !errors.As(err, &setup) || !strings.Contains(err.Error(), "TiDB (8.0.11-TiDB-v8.5.2)") || !strings.Contains(setup.Cure, use.instead) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The guard of WORKER_NODE is refused after the table's engine was read; nothing is
// written.
func TestAGuardedWorkerNodeIsRefusedOnTiDB(t *testing.T) {
	mock, store := onTiDB(t)
	expect(mock, one("FROM information_schema.TABLES", "InnoDB", false, false))
	var setup *keygen.SetupError
	if _, err := store.GuardedWorkerNode("h", "1").Acquire(t.Context(), keygen.Disposable()); !errors.As(err, &setup) || !strings.Contains(setup.Cure, "use WorkerNode") {
		t.Errorf("got %v", err)
	}
}

func TestSegmentsAreReservedOnTiDB(t *testing.T) {
	mock, store := onTiDB(t)
	begin := func() {
		for _, text := range []string{"COMMIT", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"} {
			mock.ExpectExec(text).WillReturnResult(sqlmock.NewResult(0, 0))
		}
	}
	expect(mock, one("FROM information_schema.COLUMNS", "bigint"), one("FROM information_schema.TABLES", "InnoDB", false, false))
	begin()
	expect(mock, one("SELECT `max_id` FROM `leaf_alloc`", int64(1)))
	mock.ExpectExec("COMMIT").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectExec("UPDATE `leaf_alloc` SET `max_id` = LAST_INSERT_ID(`max_id` + 10)").WillReturnResult(sqlmock.NewResult(11, 1))
	begin()
	expect(mock, one("SELECT `max_id` FROM `leaf_alloc`", int64(11)))
	mock.ExpectExec("COMMIT").WillReturnResult(sqlmock.NewResult(0, 0))
	if span, err := store.Tag("orders").Reserve(t.Context(), 10); err != nil || span.First != 1 || span.Count != 10 {
		t.Errorf("%+v, %v", span, err)
	}
}
