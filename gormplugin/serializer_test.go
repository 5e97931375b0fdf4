// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

// invoiceNumber is a serializer that stores 100 as INV-100.
type invoiceNumber struct{}

func (invoiceNumber) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return fmt.Sprintf("INV-%d", value), nil
}

func (invoiceNumber) Scan(ctx context.Context, f *schema.Field, row reflect.Value, value any) error {
	digits, ok := strings.CutPrefix(fmt.Sprint(value), "INV-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return fmt.Errorf("%q is not a number of an invoice", value)
	}
	f.ReflectValueOf(ctx, row).SetInt(n)
	return nil
}

type serialized struct {
	ID    int64  `gorm:"primaryKey;type:text;serializer:invoice_number" keygen:""`
	Email string `gorm:"unique"`
}

func TestKeysOfASerializerAreStoredAndFoundInItsForm(t *testing.T) {
	schema.RegisterSerializer("invoice_number", invoiceNumber{})
	db := openGORM(t, memory(t))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}})); err != nil {
		t.Fatal(err)
	}
	one, batch := serialized{Email: "a"}, []serialized{{Email: "a"}, {Email: "b"}}
	row, maps := map[string]any{"email": "c"}, []map[string]any{{"email": "a"}, {"email": "d"}}
	skip := clause.OnConflict{DoNothing: true}
	err := errors.Join(db.AutoMigrate(&serialized{}), db.Create(&one).Error, db.Clauses(skip).Create(&batch).Error,
		db.Model(&serialized{}).Create(row).Error, db.Model(&serialized{}).Clauses(skip).Create(maps).Error)
	if err != nil {
		t.Fatal(err)
	}
	if want := "[{0 a} {102 b}]"; fmt.Sprint(batch) != want {
		t.Errorf("a skipped and a stored row: %v, not %s", batch, want)
	}
	if want := "map[email:c id:INV-103] [map[email:a] map[email:d id:INV-105]]"; fmt.Sprint(row, maps) != want {
		t.Errorf("maps: %v %v, not %s", row, maps, want)
	}
	var rows []serialized
	if err := db.Order("email").Find(&rows).Error; err != nil || fmt.Sprint(rows) != "[{100 a} {102 b} {103 c} {105 d}]" {
		t.Errorf("%v, %v", rows, err)
	}
}
