// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
)

// gormCode is an integer that a column has as a text of five digits.
type gormCode int64

func (c gormCode) Value() (driver.Value, error) { return fmt.Sprintf("%05d", int64(c)), nil }

func (c *gormCode) Scan(v any) error {
	text, ok := v.([]byte)
	if !ok || len(text) != 5 {
		return fmt.Errorf("%q is not a code", v)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	*c = gormCode(n)
	return err
}

type gormCoded struct {
	ID    gormCode `gorm:"primaryKey;type:varchar(20)" keygen:""`
	Email string   `gorm:"unique;type:varchar(20)"`
	Note  string
}

func (gormCoded) TableName() string { return "coded" }

// gormCodes is a serializer that does the same.
type gormCodes struct{}

func (gormCodes) Value(_ context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	return gormCode(value.(int64)).Value()
}

func (gormCodes) Scan(ctx context.Context, f *schema.Field, row reflect.Value, value any) error {
	var c gormCode
	err := c.Scan(value)
	f.ReflectValueOf(ctx, row).SetInt(int64(c))
	return err
}

type gormSerialized struct {
	ID    int64  `gorm:"primaryKey;autoIncrement:false;type:varchar(20);serializer:gorm_codes" keygen:""`
	Email string `gorm:"unique;type:varchar(20)"`
	Note  string
}

func (gormSerialized) TableName() string { return "serialized" }

func TestGormKeysOfASerializerStayAsTheyAre(t *testing.T) {
	schema.RegisterSerializer("gorm_codes", gormCodes{})
	for name, conn := range map[string]*sql.DB{"MariaDB": server.ShareMariaDB(t).Open(t, "serialized"), "MySQL": server.ShareMySQL(t).Open(t, "serialized")} {
		t.Run(name, func(t *testing.T) {
			bothPaths(t, func(t *testing.T, lastInsertID bool) {
				db := database.OpenGORM(t, conn, lastInsertID)
				if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}})); err != nil {
					t.Fatal(err)
				}
				database.Exec(t, conn, "DROP TABLE IF EXISTS serialized")
				one, again := gormSerialized{Email: "a"}, gormSerialized{Email: "a", Note: "b"}
				skipped, row := []gormSerialized{{Email: "a"}, {Email: "b"}}, map[string]any{"email": "map"}
				first, fresh := gormSerialized{Email: "a"}, gormSerialized{Email: "new"}
				skip := clause.OnConflict{DoNothing: true}
				err := errors.Join(db.AutoMigrate(&gormSerialized{}), db.Create(&one).Error, db.Clauses(skip).Create(&skipped).Error,
					db.Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"note"})}).Create(&again).Error, db.Model(&gormSerialized{}).Create(row).Error,
					db.Clauses(skip).Create(&first).Error, db.Clauses(skip).Create(&fresh).Error)
				if err != nil {
					t.Fatal(err)
				}
				var rows []gormSerialized
				if err := db.Order("id").Find(&rows).Error; err != nil {
					t.Fatal(err)
				}
				if want := "[{100 a b} {102 b } {104 map } {106 new }]"; fmt.Sprint(rows) != want {
					t.Errorf("%v, not %s", rows, want)
				}
				if row["id"] != "00104" || skipped[1].ID != 102 || fresh.ID != 106 || first.ID == 105 || skipped[0].ID == 101 || again.ID == 103 {
					t.Errorf("%v, %v, %v, %v, %v", row, skipped, fresh, first, again)
				}
			})
		})
	}
}

// LAST_INSERT_ID(id) would change the text 00100 into 100.
func TestGormKeysThatTheirTypeWritesAsTextsStayAsTheyAre(t *testing.T) {
	for name, conn := range map[string]*sql.DB{"MariaDB": server.ShareMariaDB(t).Open(t, "coded"), "MySQL": server.ShareMySQL(t).Open(t, "coded")} {
		t.Run(name, func(t *testing.T) {
			bothPaths(t, func(t *testing.T, lastInsertID bool) {
				db := database.OpenGORM(t, conn, lastInsertID)
				if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(100, 1)}})); err != nil {
					t.Fatal(err)
				}
				database.Exec(t, conn, "DROP TABLE IF EXISTS coded")
				one, again := gormCoded{Email: "a"}, gormCoded{Email: "a", Note: "b"}
				skipped := []gormCoded{{Email: "a"}, {Email: "b"}}
				row := map[string]any{"email": "map"}
				err := errors.Join(db.AutoMigrate(&gormCoded{}), db.Create(&one).Error, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error,
					db.Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"note"})}).Create(&again).Error, db.Model(&gormCoded{}).Create(row).Error)
				if err != nil {
					t.Fatal(err)
				}
				var rows []gormCoded
				if err := db.Order("id").Find(&rows).Error; err != nil {
					t.Fatal(err)
				}
				if want := "[{100 a b} {102 b } {104 map }]"; fmt.Sprint(rows) != want {
					t.Errorf("%v, not %s", rows, want)
				}
				if row["id"] != gormCode(104) || skipped[1].ID != 102 {
					t.Errorf("%v, %v", row, skipped)
				}
			})
		})
	}
}
