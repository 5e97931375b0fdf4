// SPDX-License-Identifier: Apache-2.0

package uuid_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/uuid"
)

func TestABinaryIsItsTextInJSON(t *testing.T) {
	type order struct{ ID uuid.Binary }
	id := order{parse(t, rfcV7)}
	out, err := json.Marshal(id)
	if err != nil || string(out) != `{"ID":"`+rfcV7+`"}` {
		t.Fatalf("%s, %v", out, err)
	}
	var back order
	if err := json.Unmarshal(out, &back); err != nil || back != id {
		t.Errorf("%v, %v", back, err)
	}
	for _, in := range []string{`{"ID":""}`, `{"ID":5}`, `{"ID":"{` + rfcV7 + `}"}`} {
		var o order
		if err := json.Unmarshal([]byte(in), &o); err == nil {
			t.Errorf("%s was read as %v", in, o)
		}
	}
}

func TestABinaryWritesAndReadsItsText(t *testing.T) {
	var b uuid.Binary
	if err := b.UnmarshalText([]byte(strings.ToUpper(rfcV7))); err != nil || b != uuid.Binary(parse(t, rfcV7)) {
		t.Fatalf("%s, %v", b, err)
	}
	if text, err := b.MarshalText(); err != nil || string(text) != rfcV7 {
		t.Errorf("%s, %v", text, err)
	}
	for _, text := range []string{"", rfcV7[1:], rfcV7 + "0", "z" + rfcV7[1:], string(b[:])} {
		if err := b.UnmarshalText([]byte(text)); !errors.Is(err, keygen.ErrSyntax) || b.String() != rfcV7 {
			t.Errorf("%q: %s, %v", text, b, err)
		}
	}
}

func TestABinaryScansWhatDriversGive(t *testing.T) {
	want := uuid.Binary(parse(t, rfcV7))
	for _, src := range []any{want[:], []byte(rfcV7), rfcV7, uuid.Hex(want)} {
		var b uuid.Binary
		if err := b.Scan(src); err != nil || b != want {
			t.Errorf("%T: %s, %v", src, b, err)
		}
	}
	for _, src := range []any{nil, 5, "", []byte{}, want[:15], string(want[:])} {
		var b uuid.Binary
		if err := b.Scan(src); !errors.Is(err, keygen.ErrSyntax) || b != (uuid.Binary{}) {
			t.Errorf("%v: %s, %v", src, b, err)
		}
	}
}

// What Scan was given belongs to the driver, and what Value gave to nobody.
func TestABinarySharesNoBytes(t *testing.T) {
	column := []byte("0123456789abcdef")
	var b uuid.Binary
	if err := b.Scan(column); err != nil {
		t.Fatal(err)
	}
	column[0] = 'x'
	value, err := b.Value()
	if err != nil {
		t.Fatal(err)
	}
	value.([]byte)[1] = 'x'
	if string(b[:]) != "0123456789abcdef" {
		t.Errorf("%q", b[:])
	}
}

// New rows of V7 go to the end of the primary key's index; those of V4 anywhere.
func TestV7sAreInTheirOrderInColumns(t *testing.T) {
	for _, v := range []struct {
		version int
		column  string
		bind    func([16]byte) any
		ordered bool
	}{
		{7, "BINARY(16)", func(id [16]byte) any { return uuid.Binary(id) }, true},
		{7, "CHAR(36)", func(id [16]byte) any { return uuid.Dashed(id) }, true},
		{7, "CHAR(32)", func(id [16]byte) any { return uuid.Hex(id) }, true},
		{4, "BINARY(16)", func(id [16]byte) any { return uuid.Binary(id) }, false},
	} {
		name := fmt.Sprintf("V%d in %s", v.version, v.column)
		ids := make([][16]byte, 2000)
		if err := keygen.Fill(t.Context(), generators[v.version](), ids); err != nil {
			t.Fatal(err)
		}
		got := readBack(t, v.column, ids, v.bind)
		if ordered := slices.Equal(got, ids); ordered != v.ordered {
			t.Errorf("%s: in order is %v, want %v", name, ordered, v.ordered)
		}
		for _, id := range ids {
			if !slices.Contains(got, id) {
				t.Fatalf("%s: %x did not come back", name, id)
			}
		}
	}
}

// readBack inserts ids and returns them in the order of the primary key.
func readBack(t *testing.T, column string, ids [][16]byte, bind func([16]byte) any) [][16]byte {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id "+column+" PRIMARY KEY) WITHOUT ROWID"); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO orders (id) VALUES (?)", bind(id)); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM orders ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var got [][16]byte
	for rows.Next() {
		var id uuid.Binary
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		got = append(got, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}
