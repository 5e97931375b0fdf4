// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sqlxhook"
)

// Each of these is a mistake in the program. The error is returned before anything is sent.
func Example_errors() {
	mockDB, mock, err := sqlmock.New()
	check(err)
	db := sqlx.NewDb(mockDB, "mysql")
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{
		Named: map[string]keygen.Generator[int64]{"order": keygen.Counting(1000, 1)},
	}})
	check(err)
	const insert = "INSERT INTO orders (id, user_id) VALUES (:id, :user_id)"
	send := func(reason error, query string, rows any) {
		_, err := h.NamedExec(context.Background(), db, query, rows)
		fmt.Println(errors.Is(err, reason), err)
	}
	send(sqlxhook.ErrNotAddressable, insert, Order{UserID: 7})
	send(sqlxhook.ErrArgument, insert, []Order{})
	send(sqlxhook.ErrNil, insert, (*Order)(nil))
	send(sqlxhook.ErrParameter, "INSERT INTO orders (id, total) VALUES (:id, :total)", &Order{UserID: 7})
	send(sqlxhook.ErrKeyColumnMissing, "INSERT INTO orders (user_id) VALUES (:user_id)", &Order{UserID: 7})
	type Flag struct {
		ID     bool  `db:"id" keygen:"order"`
		UserID int64 `db:"user_id"`
	}
	send(sqlxhook.ErrType, insert, &Flag{})
	type Small struct {
		ID     int8  `db:"id" keygen:"order"`
		UserID int64 `db:"user_id"`
	}
	send(sqlxhook.ErrOverflow, insert, &Small{})
	err = h.Fill(context.Background(), &struct{ UserID int64 }{})
	fmt.Println(errors.Is(err, sqlxhook.ErrNoKey), err)
	fmt.Println(mock.ExpectationsWereMet())
	// Output:
	// true sqlxhook: row 0: Order.ID: cannot store the id in a struct passed by value; pass a pointer
	// true sqlxhook: []sqlxhook_test.Order is empty: argument holds no rows of one form; pass a struct pointer, a map, or a non-empty slice of either, in which maps have equal keys
	// true sqlxhook: *sqlxhook_test.Order: nil where a value is needed
	// true sqlxhook: no value for the parameter :total: sqlxhook_test.Order has no field of that name
	// true sqlxhook: Order.ID: the INSERT does not store the generated key; add its column and parameter: column id, parameter :id
	// true sqlxhook: sqlxhook_test.Flag.ID: bool: type cannot hold a key of this generator; integers take int64 ids, strings texts or encoded ids, [16]byte takes binary keys, and types with Scan what they scan
	// true sqlxhook: row 0: Small.ID: 1000 into int8: id does not fit the field; widen the field and its column to 64 bits
	// true sqlxhook: struct { UserID int64 }: no field has a keygen tag
	// <nil>
}

// check keeps the example short; a program returns its errors.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
