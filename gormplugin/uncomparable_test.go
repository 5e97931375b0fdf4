// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

// blobKey is a key of bytes that == does not compare.
type blobKey []byte

func (k blobKey) Value() (driver.Value, error) {
	if k == nil {
		return nil, nil
	}
	return string(k), nil
}

func (k *blobKey) Scan(v any) error {
	switch v := v.(type) {
	case string:
		*k = blobKey(v)
	case []byte:
		*k = append(blobKey{}, v...)
	default:
		return fmt.Errorf("%T is not a key", v)
	}
	return nil
}

type blob struct {
	ID    blobKey `gorm:"primaryKey;type:text" keygen:""`
	Email string  `gorm:"unique"`
}

func TestASkippedRowLosesAKeyThatCannotBeCompared(t *testing.T) {
	db := openGORM(t, memory(t))
	texts := keygen.Map(keygen.Counting(100, 1), func(id int64) (string, error) { return fmt.Sprint("k", id), nil })
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Text: map[string]keygen.Generator[string]{"": texts}}})); err != nil {
		t.Fatal(err)
	}
	one, batch := blob{Email: "a"}, []blob{{Email: "a"}, {Email: "b"}}
	err := errors.Join(db.AutoMigrate(&blob{}), db.Create(&one).Error, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&batch).Error)
	if err != nil {
		t.Fatal(err)
	}
	if batch[0].ID != nil || len(batch[1].ID) == 0 {
		t.Errorf("%q", batch)
	}
}
