// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
)

var kindTests = []test{
	{"EveryKindOfKeyIsFilledAndRead", everyKind},
	{"EveryKindOfKeyIsTakenBack", kindsTakenBack},
	{"MapsReceiveEveryKindOfKey", kindsInMaps},
	{"TextsAreWrittenAsTheTagSays", texts},
	{"TagsOfGormAndDBSayTheSame", otherTags},
	{"AnOverflowIsAnErrorBeforeAnySQL", overflow},
}

// words and binaries are generators of other kinds of keys.
type words struct{ n atomic.Int64 }

func (w *words) Next(context.Context) (string, error) { return fmt.Sprintf("w%d", w.n.Add(1)), nil }

type binaries struct{ n atomic.Int64 }

func (b *binaries) Next(context.Context) ([16]byte, error) {
	return [16]byte{0xff, 15: byte(b.n.Add(1))}, nil
}

// kinds returns slices of two new rows of every kind.
func kinds() []any {
	return []any{
		&[]Int64{{}, {}}, &[]Uint64{{}, {}}, &[]Int{{}, {}}, &[]Named{{}, {}}, &[]Pointer{{}, {}}, &[]Nullable{{}, {}},
		&[]Scanned{{}, {}}, &[]Text{{}, {}}, &[]Decimal{{}, {}}, &[]Encoded{{}, {}}, &[]Binary{{}, {}},
	}
}

func everyKind(t *testing.T, e *env) {
	for _, dest := range kinds() {
		name := reflect.TypeOf(dest).Elem().Elem().Name()
		if err := e.Create(dest).Error; err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rows := reflect.ValueOf(dest).Elem()
		stored := reflect.New(rows.Type())
		must(t, e.bare(t).Order("id").Find(stored.Interface()).Error)
		sameJSON(t, stored.Interface(), dest)
		if rows.Index(0).Field(0).IsZero() {
			t.Errorf("%s: not filled", name)
		}
	}
}

func kindsTakenBack(t *testing.T, e *env) {
	for _, dest := range kinds() {
		must(t, e.Session(&gorm.Session{DryRun: true}).Create(dest).Error)
		if rows := reflect.ValueOf(dest).Elem(); !rows.Index(0).IsZero() || !rows.Index(1).IsZero() {
			t.Errorf("%v was left", dest)
		}
	}
}

func kindsInMaps(t *testing.T, e *env) {
	for _, dest := range kinds() {
		rows := reflect.ValueOf(dest).Elem()
		model := reflect.New(rows.Type().Elem()).Interface()
		row := map[string]any{"id": nil}
		if err := e.Model(model).Create(row).Error; err != nil {
			t.Errorf("%T: %v", model, err)
			continue
		}
		must(t, e.bare(t).First(model, "id = ?", row["id"]).Error)
	}
}

func texts(t *testing.T, e *env) {
	decimal, encoded, text := Decimal{}, Encoded{}, Text{}
	must(t, errors.Join(e.Create(&decimal).Error, e.Create(&encoded).Error, e.Create(&text).Error))
	same(t, "decimal", decimal.ID, "1000000")
	same(t, "encoded", encoded.ID, strings.Repeat("0", 8)+"lfm2")
	same(t, "text", text.ID, "w1")
}

func otherTags(t *testing.T, e *env) {
	g, d := GormTagged{}, DBTagged{}
	must(t, errors.Join(e.Create(&g).Error, e.Create(&d).Error))
	same(t, "ids", g.ID*1000+d.ID, 500_501)
	type Torn struct {
		ID int64 `gorm:"keygen:pet" keygen:""`
	}
	if err := e.Create(&Torn{}).Error; err == nil || !strings.Contains(err.Error(), "Torn.ID") {
		t.Errorf("tags that disagree: %v", err)
	}
}

func overflow(t *testing.T, e *env) {
	narrow := Narrow{}
	if err := e.Create(&narrow).Error; !errors.Is(err, gormplugin.ErrOverflow) || narrow.ID != 0 {
		t.Errorf("%v, id %d", err, narrow.ID)
	}
	sameList(t, "statements", e.log.take())
}
