// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
)

// Execer is a database, a connection or a transaction.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Queryer is a database, a connection or a transaction.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Exec runs a statement. An error fails the test.
func Exec(t testing.TB, db Execer, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%v\nin %.200s", err, statement)
	}
}

// Number returns the number that a query returns.
func Number(ctx context.Context, db *sql.DB, query string, args ...any) (n int64, err error) {
	if err = db.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		err = fmt.Errorf("%s: %w", query, err)
	}
	return n, err
}

// MustNumber is [Number], except that an error fails the test.
func MustNumber(t *testing.T, db *sql.DB, query string, args ...any) int64 {
	t.Helper()
	n, err := Number(t.Context(), db, query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Texts returns the column of a query that has one.
func Texts(t *testing.T, db Queryer, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// AtOnce runs f in n goroutines that start at the same time.
func AtOnce(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	start, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start.Done()
			if err := f(i); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	stop()
	wg.Wait()
}
