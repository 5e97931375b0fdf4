// SPDX-License-Identifier: Apache-2.0

package objectid_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/objectid"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// standing is a clock that stands still.
func standing(at time.Time) objectid.Config {
	return objectid.Config{Now: func() time.Time { return at }}
}

func TestConformance(t *testing.T) {
	t.Run("binary(12)", func(t *testing.T) {
		keygentest.Keys(t, func(*testing.T) keygen.Generator[[12]byte] { return objectid.New(objectid.Config{}) })
	})
	t.Run("binary(12) while the clock stands still", func(t *testing.T) {
		keygentest.Keys(t, func(*testing.T) keygen.Generator[[12]byte] { return objectid.New(standing(noon)) })
	})
	t.Run("char(24)", func(t *testing.T) {
		keygentest.Keys(t, func(*testing.T) keygen.Generator[string] { return objectid.HexKeys(objectid.New(objectid.Config{})) })
	})
}

// The first id is the one of MongoDB's manual; the times of the others are those
// of the drivers' specification.
func TestAnIDHoldsWhatMongoDBSaysItHolds(t *testing.T) {
	for text, want := range map[string]objectid.Parts{
		"507f1f77bcf86cd799439011": {Time: time.Date(2012, 10, 17, 21, 13, 27, 0, time.UTC), Process: [5]byte{0xbc, 0xf8, 0x6c, 0xd7, 0x99}, Counter: 0x439011},
		"507f191e810c19729de860ea": {Time: time.Date(2012, 10, 17, 20, 46, 22, 0, time.UTC), Process: [5]byte{0x81, 0x0c, 0x19, 0x72, 0x9d}, Counter: 0xe860ea},
		"000000000000000000000000": {Time: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
		"7FFFFFFF0000000000000001": {Time: time.Date(2038, 1, 19, 3, 14, 7, 0, time.UTC), Counter: 1},
		"80000000ffffffffff000000": {Time: time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC), Process: [5]byte{0xff, 0xff, 0xff, 0xff, 0xff}},
		"ffffffff0000000000ffffff": {Time: time.Date(2106, 2, 7, 6, 28, 15, 0, time.UTC), Counter: 1<<24 - 1},
	} {
		id, err := objectid.Parse(text)
		if err != nil {
			t.Error(err)
		}
		if got := objectid.Split(id); got != want {
			t.Errorf("%s holds %+v, want %+v", text, got, want)
		}
		if got := objectid.Hex(id); got != strings.ToLower(text) {
			t.Errorf("%s came back as %s", text, got)
		}
	}
}

func TestANewIDHasTheBytesOfTheFormat(t *testing.T) {
	g := objectid.New(standing(time.Date(2012, 10, 17, 21, 13, 27, 999_999_999, time.UTC)))
	g.StartAt(0xbcf86cd799439010)
	for _, want := range []string{"507f1f77bcf86cd799439011", "507f1f77bcf86cd799439012"} {
		if got, err := objectid.HexKeys(g).Next(t.Context()); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// The counter has 2^24 values, and this clock does not leave its second.
func TestMoreIDsThanTheCounterCountsInASecondAreAllDifferent(t *testing.T) {
	const chunks, size = 1<<8 + 2, 1 << 16
	g := objectid.New(standing(noon))
	g.StartAt(1<<63 + 12_345)
	ids := make([][12]byte, size)
	var last uint64
	for range chunks {
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			n := binary.BigEndian.Uint64(id[4:])
			if n <= last { // so long as they rise none comes twice
				t.Fatalf("%x came after %x", n, last)
			}
			last = n
		}
	}
	if at := objectid.Time(ids[size-1]); !at.Equal(noon) {
		t.Errorf("the last id is of %v, and was made at %v", at, noon)
	}
}

func TestTheCounterCarriesIntoTheRandomBytes(t *testing.T) {
	g := objectid.New(standing(noon))
	for start, want := range map[uint64][2]string{
		0x0102030405fffffe: {"0102030405ffffff", "0102030406000000"},
		0xfffffffffffffffe: {"ffffffffffffffff", "0000000000000000"},
	} {
		g.StartAt(start)
		for _, tail := range want {
			if got, err := objectid.HexKeys(g).Next(t.Context()); err != nil || got[8:] != tail {
				t.Errorf("%s, %v; want …%s", got, err, tail)
			}
		}
	}
}

func TestAClockSetBackRepeatsNoID(t *testing.T) {
	now := noon
	g := objectid.New(objectid.Config{Now: func() time.Time { return now }})
	seen := map[[12]byte]bool{}
	for i := range 1000 {
		now = noon.Add(time.Duration(-i%7) * time.Second)
		ids := make([][12]byte, 10)
		if err := g.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("%x came twice", id)
			}
			seen[id] = true
			if at := objectid.Time(id); !at.Equal(now) {
				t.Fatalf("%x is of %v, want %v", id, at, now)
			}
		}
	}
}

func TestAClockThatTheFormatCannotHoldIsRefused(t *testing.T) {
	for _, v := range []struct {
		sec  int64
		want error
	}{
		{math.MinInt32, keygen.ErrClockRollback}, {-1, keygen.ErrClockRollback}, {0, keygen.ErrClockRollback},
		{1, nil}, {math.MaxUint32, nil},
		{math.MaxUint32 + 1, keygen.ErrExpired}, {math.MaxInt64 / 4, keygen.ErrExpired},
	} {
		g := objectid.New(standing(time.Unix(v.sec, 0)))
		id, err := g.Next(t.Context())
		if !errors.Is(err, v.want) || (v.want != nil) != (id == [12]byte{}) {
			t.Errorf("at %d: %x, %v; want %v", v.sec, id, err, v.want)
		}
		if err := g.Fill(t.Context(), make([][12]byte, 2)); !errors.Is(err, v.want) {
			t.Errorf("Fill at %d: %v; want %v", v.sec, err, v.want)
		}
	}
}

func TestGeneratorsBeginAtRandom(t *testing.T) {
	seen := map[[5]byte]bool{}
	for range 100 {
		id, err := objectid.New(standing(noon)).Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[objectid.Split(id).Process] = true
	}
	if len(seen) != 100 {
		t.Errorf("100 generators have %d beginnings", len(seen))
	}
}

func TestTextsAreReadStrictly(t *testing.T) {
	for _, text := range []string{"", "507f1f77bcf86cd79943901", "507f1f77bcf86cd7994390111", "507f1f77bcf86cd79943901g", " 507f1f77bcf86cd79943901", `ObjectId("507f1f77bcf86c`, strings.Repeat("é", 12)} {
		if id, err := objectid.Parse(text); !errors.Is(err, keygen.ErrSyntax) || id != [12]byte{} {
			t.Errorf("%q was read as %x, %v", text, id, err)
		}
	}
}

func TestABinaryIsItsDigitsInJSON(t *testing.T) {
	type order struct{ ID objectid.Binary }
	const text = `{"ID":"507f1f77bcf86cd799439011"}`
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	if out, err := json.Marshal(o); err != nil || string(out) != text {
		t.Errorf("%s, %v", out, err)
	}
	for _, in := range []string{`{"ID":""}`, `{"ID":5}`} {
		if err := json.Unmarshal([]byte(in), &order{}); err == nil {
			t.Errorf("%s was read", in)
		}
	}
}

func TestABinaryWritesAndReadsItsText(t *testing.T) {
	const digits = "507f1f77bcf86cd799439011"
	var b objectid.Binary
	if err := b.UnmarshalText([]byte(strings.ToUpper(digits))); err != nil || b[0] != 0x50 || b[11] != 0x11 {
		t.Fatalf("%s, %v", b, err)
	}
	if text, err := b.MarshalText(); err != nil || string(text) != digits {
		t.Errorf("%s, %v", text, err)
	}
	for _, text := range []string{"", digits[1:], digits + "0", "z" + digits[1:], string(b[:])} {
		if err := b.UnmarshalText([]byte(text)); !errors.Is(err, keygen.ErrSyntax) || b.String() != digits {
			t.Errorf("%q: %s, %v", text, b, err)
		}
	}
}

func TestABinaryScansWhatDriversGive(t *testing.T) {
	want := objectid.Binary{0x50, 0x7f, 0x1f, 0x77, 0xbc, 0xf8, 0x6c, 0xd7, 0x99, 0x43, 0x90, 0x11}
	for _, src := range []any{want[:], []byte(want.String()), want.String()} {
		var b objectid.Binary
		if err := b.Scan(src); err != nil || b != want {
			t.Errorf("%T: %s, %v", src, b, err)
		}
	}
	for _, src := range []any{nil, 5, "", want[:11], string(want[:])} {
		var b objectid.Binary
		if err := b.Scan(src); !errors.Is(err, keygen.ErrSyntax) || b != (objectid.Binary{}) {
			t.Errorf("%v: %s, %v", src, b, err)
		}
	}
}

func TestIDsAreInTheirOrderInABinaryColumn(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id BINARY(12) PRIMARY KEY, n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	g := objectid.New(standing(noon))
	g.StartAt(1<<24 - 500) // also where the counter overflows
	for n := range 1000 {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "INSERT INTO orders (id, n) VALUES (?, ?)", objectid.Binary(id), n); err != nil {
			t.Fatal(err)
		}
	}
	var misplaced int
	const query = "SELECT COUNT(*) FROM (SELECT n, ROW_NUMBER() OVER (ORDER BY id) AS place FROM orders) AS sorted WHERE place <> n + 1"
	if err := db.QueryRowContext(t.Context(), query).Scan(&misplaced); err != nil || misplaced > 0 {
		t.Errorf("%d of 1000 are out of order, %v", misplaced, err)
	}
}

func FuzzParseReadsOnlyDigits(f *testing.F) {
	f.Add("507f1f77bcf86cd799439011")
	f.Add("507F1F77BCF86CD799439011")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := objectid.Parse(text)
		if err != nil {
			if !errors.Is(err, keygen.ErrSyntax) || id != [12]byte{} {
				t.Errorf("%q: %x, %v", text, id, err)
			}
			return
		}
		if objectid.Hex(id) != strings.ToLower(text) {
			t.Errorf("%q was read as %x", text, id)
		}
		p := objectid.Split(id)
		var tail [4]byte
		binary.BigEndian.PutUint32(tail[:], p.Counter)
		whole := slices.Concat(binary.BigEndian.AppendUint32(nil, uint32(p.Time.Unix())), p.Process[:], tail[1:])
		if !bytes.Equal(whole, id[:]) {
			t.Errorf("%x holds %+v", id, p)
		}
	})
}

func FuzzScanReadsOnlyIDs(f *testing.F) {
	f.Add([]byte("507f1f77bcf86cd799439011"))
	f.Add([]byte("0123456789ab"))
	f.Fuzz(func(t *testing.T, column []byte) {
		var b objectid.Binary
		if err := b.Scan(column); err != nil {
			if !errors.Is(err, keygen.ErrSyntax) || b != (objectid.Binary{}) {
				t.Errorf("%q: %s, %v", column, b, err)
			}
			return
		}
		if string(column) != string(b[:]) && strings.ToLower(string(column)) != b.String() {
			t.Errorf("%q was read as %s", column, b)
		}
	})
}

func BenchmarkGenerator(b *testing.B) {
	g := objectid.New(objectid.Config{})
	b.Run("time.Now", func(b *testing.B) {
		for b.Loop() {
			_ = time.Now()
		}
	})
	b.Run("next", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		dst := make([][12]byte, 64)
		for b.Loop() {
			if err := g.Fill(b.Context(), dst); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/id")
	})
}

func TestAGeneratorWithoutRandomBytesOfItsOwnRefuses(t *testing.T) {
	var g objectid.Generator
	if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrUnknownGenerator) {
		t.Errorf("%x, %v", id, err)
	}
	if err := g.Fill(t.Context(), make([][12]byte, 2)); !errors.Is(err, keygen.ErrUnknownGenerator) {
		t.Errorf("Fill: %v", err)
	}
}
