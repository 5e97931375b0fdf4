package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
)

// A driver may close the connection of a call that is given up, and then say no
// more than that it is gone.
func TestACallThatWasGivenUpSaysSoWhateverTheDriverSays(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	store, err := New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = store.do(ctx, func(session) error {
		cancel()
		return driver.ErrBadConn
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("got %v", err)
	}
}
