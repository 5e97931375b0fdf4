// SPDX-License-Identifier: Apache-2.0

package gorm_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"gorm.io/gorm/clause"

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
