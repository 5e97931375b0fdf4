// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"database/sql/driver"
	"slices"
	"testing"

	sqlmock "github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sqlxhook"
)

// plain is a converter that changes nothing, as tests with arrays use one, and records its values.
type plain struct{ seen *[]any }

func (p plain) ConvertValue(v any) (driver.Value, error) {
	*p.seen = append(*p.seen, v)
	return v, nil
}

func newMock(t *testing.T, converter driver.ValueConverter) (*sqlx.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual), sqlmock.ValueConverterOption(converter))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		mock.ExpectClose()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	})
	return sqlx.NewDb(db, "mysql"), mock
}

// countingHook returns a hook whose keys count from 1000, as in the tests of users.
func countingHook(t *testing.T) *sqlxhook.Hook {
	t.Helper()
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1000, 1)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A mock fails on any statement that it does not expect, so these tests also check that nothing
// else is sent.

func TestAPlainInsertIsTheOnlyStatementThatIsSent(t *testing.T) {
	h := countingHook(t)
	db, mock := newMock(t, driver.DefaultParameterConverter)
	mock.ExpectExec("INSERT INTO `orders` (`id`,`user_id`,`note`) VALUES (?,?,?)").
		WithArgs(int64(1000), int64(7), "").WillReturnResult(sqlmock.NewResult(0, 1))
	if _, err := h.Insert(t.Context(), db, "orders", &order{UserID: 7}); err != nil {
		t.Error(err)
	}
}

func TestASplitBatchAddsBeginAndCommitAndNothingElse(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{MaxParams: 3})
	db, mock := newMock(t, driver.DefaultParameterConverter)
	mock.ExpectBegin()
	for range 2 {
		mock.ExpectExec(insertOrderMySQL).WillReturnResult(sqlmock.NewResult(0, 1))
	}
	mock.ExpectCommit()
	if _, err := h.NamedExec(t.Context(), db, insertOrder, make([]order, 2)); err != nil {
		t.Error(err)
	}
}

const insertOrderMySQL = "INSERT INTO orders (id, user_id, note) VALUES (?, ?, ?)"

func TestColumnsAndArgumentsKeepTheirOrder(t *testing.T) {
	h := countingHook(t)
	db, mock := newMock(t, driver.DefaultParameterConverter)
	for i := range 50 {
		mock.ExpectExec("INSERT INTO `orders` (`id`,`user_id`,`note`) VALUES (?,?,?),(?,?,?)").
			WithArgs(int64(1000+2*i), int64(7), "a", int64(1001+2*i), int64(8), "b").WillReturnResult(sqlmock.NewResult(0, 2))
		mock.ExpectExec("INSERT INTO `orders` (`a`,`b`,`c`,`id`) VALUES (?,?,?,?)").
			WithArgs(1, 2, 3, 4).WillReturnResult(sqlmock.NewResult(0, 1))
		if _, err := h.Insert(t.Context(), db, "orders", []order{{UserID: 7, Note: "a"}, {UserID: 8, Note: "b"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Insert(t.Context(), db, "orders", map[string]int{"id": 4, "c": 3, "a": 1, "b": 2}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDriversAreGivenTheFieldsOwnTypes(t *testing.T) {
	h := countingHook(t)
	var seen []any
	db, mock := newMock(t, plain{&seen})
	mock.ExpectExec(insertOrderMySQL).WithArgs(int64(1000), int64(7), "a").WillReturnResult(sqlmock.NewResult(0, 1))
	if _, err := h.NamedExec(t.Context(), db, insertOrder, &order{UserID: 7, Note: "a"}); err != nil {
		t.Error(err)
	}
	sent := []any{int64(1000), int64(7), "a"} // converted once as arguments, once as what is expected
	if !slices.Equal(seen, append(sent, sent...)) {
		t.Errorf("%#v", seen)
	}
}
