// SPDX-License-Identifier: Apache-2.0

package idmap

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/internal/backend"
)

// fromSevenHundred generates 701, 702 and so on.
type fromSevenHundred int64

func (g *fromSevenHundred) Next(context.Context) (int64, error) {
	*g++
	return 700 + int64(*g), nil
}

// mapped is a source with the rows 1 and 2 and a map table.
func mapped(t *testing.T) (Writer, *Renumbering) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "source.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	source, err := backend.Open(t.Context(), "source", backend.FenceTable, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	for _, text := range []string{"CREATE TABLE orders (id INTEGER PRIMARY KEY)", "INSERT INTO orders VALUES (1), (2)", source.MapDefinition("ids")} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	onSource := func(ctx context.Context, f func(*backend.Session) error) error {
		return source.Do(ctx, func(s *backend.Session) error { return s.Tx(ctx, func() error { return f(s) }) })
	}
	w := Writer{Table: "ids", Source: source, From: source, OnSource: onSource, Persist: func(context.Context) error { return nil }}
	return w, &Renumbering{By: Drawn{new(fromSevenHundred)}, Of: &backend.Table{Name: "orders", Key: "id"}}
}

func TestAnIdKeepsTheCounterpartThatItGotFirst(t *testing.T) {
	w, r := mapped(t)
	wanted := Wanted{}
	wanted.Add(r, 1)
	wanted.Add(r, 2)
	for range 2 {
		d, err := w.Dictionary(t.Context(), wanted, ToShards)
		if err != nil {
			t.Fatal(err)
		}
		for old, want := range map[int64]int64{0: 0, 1: 701, 2: 702} {
			if id, err := d.Turn(r, old); err != nil || id != want {
				t.Errorf("%d became %d, not %d: %v", old, id, want, err)
			}
		}
	}
}

func TestAnIdOfTheShardsGetsTheNextOfTheSource(t *testing.T) {
	w, r := mapped(t)
	wanted := Wanted{}
	wanted.Add(r, 900)
	d, err := w.Dictionary(t.Context(), wanted, ToSource)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := d.Turn(r, 900); err != nil || id != 3 {
		t.Errorf("900 became %d, and the source's highest is 2: %v", id, err)
	}
}

func TestALookUpGivesNoCounterparts(t *testing.T) {
	w, r := mapped(t)
	wanted := Wanted{}
	wanted.Add(r, 1)
	d, err := w.LookUp(t.Context(), w.From, wanted, ToShards)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := d.Turn(r, 1); !errors.Is(err, ErrNoID) {
		t.Errorf("1 became %d: %v", id, err)
	}
}
