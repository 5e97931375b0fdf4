// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/shardid/shardid/schema"
)

// These tests play a server of MySQL 8, which answers AUTO_INCREMENT from a
// cache unless the session says otherwise.

const (
	expiryIsShown = "SHOW SESSION VARIABLES LIKE 'information_schema_stats_expiry'"
	expiryIsZero  = "SET SESSION information_schema_stats_expiry = 0"
	expiryIsBack  = "SET SESSION information_schema_stats_expiry = 86400"
	tableIsRead   = "FROM information_schema.TABLES"
)

// mysql8 expects everything up to the reading of the table, and tells seen each
// statement that arrives.
func mysql8(t *testing.T, seen func(statement string)) (sqlmock.Sqlmock, func(context.Context) (int64, error)) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(expected, actual string) error {
		seen(actual)
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
	mock.ExpectQuery("SELECT VERSION()").WillReturnRows(sqlmock.NewRows([]string{"v"}).AddRow("9.0.1"))
	mock.ExpectQuery("SELECT DATABASE()").WillReturnRows(sqlmock.NewRows([]string{"d"}).AddRow("shop"))
	mock.ExpectQuery(expiryIsShown).WillReturnRows(sqlmock.NewRows([]string{"n", "v"}).AddRow("information_schema_stats_expiry", "86400"))
	return mock, func(ctx context.Context) (int64, error) { return schema.NextID(ctx, db, "orders", "id") }
}

func TestNextIDReadsMySQLsCounterFreshlyAndRestoresTheSession(t *testing.T) {
	mock, next := mysql8(t, func(string) {})
	mock.ExpectExec(expiryIsZero).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery(tableIsRead).WillReturnRows(sqlmock.NewRows([]string{"n", "e", "a"}).AddRow("orders", "InnoDB", uint64(17)))
	mock.ExpectQuery("FROM information_schema.COLUMNS").WillReturnRows(
		sqlmock.NewRows([]string{"n", "d", "c", "e"}).AddRow("id", "bigint", "bigint unsigned", "auto_increment"))
	mock.ExpectQuery("FROM information_schema.KEY_COLUMN_USAGE").WillReturnRows(sqlmock.NewRows([]string{"n"}).AddRow("id"))
	mock.ExpectQuery("JOIN information_schema.REFERENTIAL_CONSTRAINTS").WillReturnRows(sqlmock.NewRows([]string{"a", "b", "c", "d", "e", "f", "g"}))
	mock.ExpectQuery("FROM information_schema.STATISTICS").WillReturnRows(sqlmock.NewRows([]string{"n", "c"}))
	mock.ExpectBegin()
	mock.ExpectQuery("SELECT (SELECT MIN(`id`) FROM `orders`), (SELECT MAX(`id`) FROM `orders`)").
		WillReturnRows(sqlmock.NewRows([]string{"l", "h"}).AddRow("1", "6"))
	mock.ExpectCommit()
	mock.ExpectExec(expiryIsBack).WillReturnResult(sqlmock.NewResult(0, 0))
	if got, err := next(t.Context()); err != nil || got != 17 {
		t.Errorf("NextID = %d, %v", got, err)
	}
}

func TestSessionIsRestoredWhenTheContextEndedInBetween(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	mock, next := mysql8(t, func(statement string) {
		if strings.Contains(statement, tableIsRead) {
			cancel()
		}
	})
	mock.ExpectExec(expiryIsZero).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery(tableIsRead).WillReturnError(context.Canceled)
	mock.ExpectExec(expiryIsBack).WillReturnResult(sqlmock.NewResult(0, 0))
	if _, err := next(ctx); err == nil {
		t.Error("no error of the query")
	}
}

func TestConnectionThatCannotBeRestoredIsDropped(t *testing.T) {
	mock, next := mysql8(t, func(string) {})
	mock.ExpectExec(expiryIsZero).WillReturnError(errors.New("broken"))
	mock.ExpectExec(expiryIsBack).WillReturnError(errors.New("still broken"))
	mock.ExpectClose()
	if _, err := next(t.Context()); err == nil || !strings.Contains(err.Error(), "still broken") {
		t.Errorf("error is %v", err)
	}
}
