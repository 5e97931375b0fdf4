// SPDX-License-Identifier: Apache-2.0

package database

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/keygen/sqlstore"
	"github.com/shardid/shardid/schema"
)

// Store opens a pool and a store on it, in a database that has shardid's tables
// and the tag orders.
func (open Opener) Store(t *testing.T) (*sql.DB, *sqlstore.Store) {
	t.Helper()
	db := open(t)
	return db, Prepare(t, db)
}

// Prepare creates the tables of shardid and the tag orders, and returns a store on them.
func Prepare(t *testing.T, db *sql.DB) *sqlstore.Store {
	t.Helper()
	if err := schema.Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Seed(t.Context(), db, "orders", 1, 1000); err != nil {
		t.Fatal(err)
	}
	return StoreOn(t, db)
}

// StoreOn returns a store.
func StoreOn(t *testing.T, db *sql.DB) *sqlstore.Store {
	t.Helper()
	store, err := sqlstore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return store
}
