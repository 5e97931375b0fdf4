// SPDX-License-Identifier: Apache-2.0

package sqlxhook_test

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sqlxhook"
)

type uuid [16]byte

func (u uuid) String() string { return hex.EncodeToString(u[:]) }

func kindSet() keygen.Set {
	n := 0
	return keygen.Set{
		Default: keygen.Counting(1295, 1),
		Named:   map[string]keygen.Generator[int64]{"order": keygen.Counting(35, 1)},
		Text: map[string]keygen.Generator[string]{"order": keygen.Func[string](func(context.Context) (string, error) {
			n++
			return fmt.Sprintf("ord_%d", n), nil
		})},
		Binary: map[string]keygen.Generator[[16]byte]{"order": keygen.Func[[16]byte](func(context.Context) ([16]byte, error) {
			n++
			return [16]byte{0: 0xab, 15: byte(n)}, nil
		})},
	}
}

type kindsOfKeys struct {
	Text    string         `db:"text" keygen:"order"`
	Default string         `db:"def" keygen:""`
	Base36  string         `db:"base36" keygen:",base36,pad=6"`
	Null    sql.NullString `db:"null36,keygen=order,base36"`
	Hex     uuid           `db:"bytes" gorm:"keygen:order"`
	Pointer *uuid          `db:"pointer" keygen:"order"`
	Number  *int64         `db:"number" keygen:"order"`
}

func TestTextAndBinaryKeysComeFromTheGeneratorOfTheirKind(t *testing.T) {
	h, err := sqlxhook.New(sqlxhook.Config{Generators: kindSet()})
	if err != nil {
		t.Fatal(err)
	}
	preset := uuid{9}
	rows := []kindsOfKeys{{}, {Text: "mine", Pointer: &preset}}
	db := &speaks{driver: "mysql"}
	res, err := h.Insert(t.Context(), db, "k", rows)
	if err != nil || res.IDs != nil {
		t.Fatalf("%v, %v", res.IDs, err)
	}
	first, second := rows[0], rows[1]
	if got := fmt.Sprint(first.Text, " ", first.Default, " ", second.Default, " ", first.Base36, " ", first.Null.String, " ", second.Null.String); got != "ord_1 1295 1296 000101 z 10" {
		t.Errorf("%s", got)
	}
	if first.Hex != (uuid{0: 0xab, 15: 2}) || second.Hex != (uuid{0: 0xab, 15: 3}) || *first.Pointer != (uuid{0: 0xab, 15: 4}) || *second.Pointer != (uuid{9}) {
		t.Errorf("%s %s %s %s", first.Hex, second.Hex, first.Pointer, second.Pointer)
	}
	if *first.Number != 37 || db.args[0][0] != "ord_1" || db.args[0][4] != first.Hex {
		t.Errorf("%d, sent %v", *first.Number, db.args[0])
	}
}

func TestAFailedCallRemovesItsKeysWhateverTheirKind(t *testing.T) {
	set := kindSet()
	set.Named["order"] = keygen.Func[int64](func(context.Context) (int64, error) { return 0, keygen.ErrStarved })
	h, err := sqlxhook.New(sqlxhook.Config{Generators: set})
	if err != nil {
		t.Fatal(err)
	}
	zero := uuid{}
	rows := []kindsOfKeys{{Null: sql.NullString{String: "left"}}, {Pointer: &zero}}
	if err := h.Fill(t.Context(), rows); !errors.Is(err, keygen.ErrStarved) {
		t.Fatal(err)
	}
	if rows[0] != (kindsOfKeys{Null: sql.NullString{String: "left"}}) || rows[1].Pointer != &zero || rows[1].Text != "" || zero != (uuid{}) {
		t.Errorf("%+v", rows)
	}
}

func TestAFieldThatCannotHoldTheGeneratorsKeysIsAnError(t *testing.T) {
	h, err := sqlxhook.New(sqlxhook.Config{Generators: keygen.Set{
		Default: keygen.Counting(1, 1),
		Binary:  kindSet().Binary,
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		arg  any
		want error
		text string
	}{
		"integer from a binary generator": {&struct {
			ID int64 `db:"id" keygen:"order"`
		}{}, sqlxhook.ErrType, "ID"},
		"bytes from an integer generator": {&struct {
			ID uuid `db:"id" keygen:""`
		}{}, sqlxhook.ErrType, "ID"},
		"encoding of an integer": {&struct {
			ID int64 `db:"id" keygen:",base36"`
		}{}, sqlxhook.ErrType, "base36"},
		"gorm and db tag disagree": {&struct {
			ID int64 `db:"id,keygen=order" gorm:"primaryKey;keygen:item"`
		}{}, sqlxhook.ErrTag, "keep one"},
		"a generator that there is not": {&struct {
			ID string `db:"id" keygen:"text"`
		}{}, keygen.ErrUnknownGenerator, `"text"`},
	} {
		err := h.Fill(t.Context(), c.arg)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOneGormTagServesBoth(t *testing.T) {
	h, _ := newHook(t, sqlxhook.Config{})
	row := struct {
		ID int64 `db:"id" gorm:"primaryKey;keygen:order"`
	}{}
	if err := h.Fill(t.Context(), &row); err != nil || row.ID != 10 {
		t.Errorf("%d, %v", row.ID, err)
	}
}
