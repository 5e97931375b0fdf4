// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

type (
	// Customer has an association of every kind.
	Customer struct {
		ID        int64   `keygen:""`
		Name      string  `gorm:"size:40;uniqueIndex"`
		Visits    int64   `gorm:"default:(7)" json:"-"` // MySQL does not return it
		CompanyID uint64  // belongs to
		Company   Company // by value
		BossID    *int64
		Boss      *Customer
		Card      Card
		Pets      []Pet
		Notes     []Note  `gorm:"polymorphic:Owner"`
		Labels    []Label `gorm:"many2many:customer_labels"`
		Badges    []Badge `gorm:"many2many:holdings"`
	}
	// Company is what customers belong to.
	Company struct {
		ID   uint64 `gorm:"primaryKey" keygen:""`
		Name string `gorm:"size:40;uniqueIndex"`
	}
	// Card is had once.
	Card struct {
		ID         keygen.ID `keygen:""`
		CustomerID int64
		Number     string `gorm:"size:40"`
	}
	// Pet is had many times; its names are unique, and its keys have another source.
	Pet struct {
		ID         int64 `keygen:"pet"`
		CustomerID int64
		Name       string `gorm:"size:40;uniqueIndex"`
	}
	// Note belongs to anything.
	Note struct {
		ID        int64 `keygen:""`
		OwnerID   int64
		OwnerType string `gorm:"size:40"`
		Text      string `gorm:"size:40"`
	}
	// Label is joined by a table without a key of its own.
	Label struct {
		ID   int64  `keygen:""`
		Name string `gorm:"size:40;uniqueIndex"`
	}
	// Badge is joined by Holding.
	Badge struct {
		ID   int64  `keygen:""`
		Name string `gorm:"size:40"`
	}
	// Holding joins customers and badges, with a key of its own.
	Holding struct {
		ID         int64 `gorm:"primaryKey" keygen:""`
		CustomerID int64
		BadgeID    int64
	}
)

type (
	// Person has nothing but a key and a unique name.
	Person struct {
		ID   int64  `keygen:""`
		Name string `gorm:"size:40;uniqueIndex"`
		Age  int
	}
	// Legacy is a struct of another library, without keygen tags.
	Legacy struct {
		ID   int64
		Name string `gorm:"size:40;uniqueIndex"`
	}
	// Rated has a column that the database fills when it is zero.
	Rated struct {
		ID   int64  `keygen:""`
		Name string `gorm:"size:40;uniqueIndex"`
		Rate int64  `gorm:"default:(5)"`
	}
	// Invoice is numbered by the database; its business number is not.
	Invoice struct {
		ID     int64
		Number int64  `gorm:"uniqueIndex" keygen:""`
		Name   string `gorm:"size:40;uniqueIndex"`
	}
	// Line has a composite key of which one part is filled.
	Line struct {
		OrderID int64  `gorm:"primaryKey;autoIncrement:false"`
		No      int64  `gorm:"primaryKey;autoIncrement:false" keygen:""`
		Name    string `gorm:"size:40"`
	}
	// Key is embedded.
	Key struct {
		ID int64 `gorm:"primaryKey" keygen:""`
	}
	// Derived embeds a pointer.
	Derived struct {
		*Key

		Name string `gorm:"size:40"`
	}
	// Prefixed embeds a field whose column has a prefix.
	Prefixed struct {
		Key  Key    `gorm:"embedded;embeddedPrefix:my_"`
		Name string `gorm:"size:40"`
	}
	// Based embeds what users embed.
	Based struct {
		gormplugin.Base

		Name string `gorm:"size:40"`
	}
	// Hooked has hooks that act as its name says.
	Hooked struct {
		ID   int64  `keygen:""`
		Name string `gorm:"size:40"`
		saw  int64
	}
	// Dawn gets its key before its hooks run.
	Dawn struct {
		ID   int64  `keygen:",hooks"`
		Name string `gorm:"size:40"`
		saw  int64
	}
	// ReadOnly has a key that is not written.
	ReadOnly struct {
		ID   int64  `gorm:"->" keygen:""`
		Name string `gorm:"size:40"`
	}
	// UpdateOnly has a key that is only updated.
	UpdateOnly struct {
		ID   int64  `gorm:"<-:update" keygen:""`
		Name string `gorm:"size:40"`
	}
	// Never must not be filled.
	Never struct {
		ID   int64  `keygen:"-"`
		Name string `gorm:"size:40"`
	}
)

// TableName returns the name of a table without a plugin.
func (ReadOnly) TableName() string { return "legacies" }

// TableName returns the name of a table without a plugin.
func (UpdateOnly) TableName() string { return "legacies" }

// TableName returns the name of a table without a plugin.
func (Never) TableName() string { return "legacies" }

var errHook = errors.New("the hook fails")

// BeforeCreate sets the key, empties it or returns an error, as the name says.
func (h *Hooked) BeforeCreate(*gorm.DB) error {
	h.saw = h.ID
	switch h.Name {
	case "own":
		h.ID = 42
	case "empty":
		h.ID = 0
	case "fail":
		return errHook
	}
	return nil
}

// AfterCreate returns an error if the name says so.
func (h *Hooked) AfterCreate(*gorm.DB) error {
	if h.Name == "fail after" {
		return errHook
	}
	return nil
}

// BeforeCreate stores the key that it sees.
func (d *Dawn) BeforeCreate(*gorm.DB) error {
	d.saw = d.ID
	return nil
}

// The kinds of keys, each with its own table.
type (
	// Int64 and the following have one column.
	Int64 struct {
		ID int64 `keygen:""`
	}
	// Uint64 is unsigned.
	Uint64 struct {
		ID uint64 `keygen:""`
	}
	// Int has the machine's word size.
	Int struct {
		ID int `keygen:""`
	}
	// Named has its own type.
	Named struct {
		ID Number `keygen:""`
	}
	// Pointer may be nil.
	Pointer struct {
		ID *int64 `gorm:"primaryKey" keygen:""`
	}
	// Nullable may be NULL.
	Nullable struct {
		ID sql.NullInt64 `gorm:"primaryKey;type:bigint" keygen:""`
	}
	// Scanned has its own form in the database.
	Scanned struct {
		ID Hex `gorm:"primaryKey" keygen:""`
	}
	// Text has a generator of strings.
	Text struct {
		ID string `gorm:"size:40" keygen:"word"`
	}
	// Decimal is the text of an id.
	Decimal struct {
		ID string `gorm:"size:40" keygen:""`
	}
	// Encoded is the text of an id in other digits, with a fixed length.
	Encoded struct {
		ID string `gorm:"size:40" keygen:",base36,pad=12"`
	}
	// Binary has a generator of 16 bytes.
	Binary struct {
		ID UUID `gorm:"primaryKey" keygen:"uuid"`
	}
	// GormTagged has the keygen setting in its gorm tag.
	GormTagged struct {
		ID int64 `gorm:"primaryKey;keygen:pet"`
	}
	// DBTagged has it in its db tag.
	DBTagged struct {
		ID int64 `db:"id,keygen=pet"`
	}
	// Narrow is too small for the ids of its generator.
	Narrow struct {
		ID int32 `keygen:"wide"`
	}
)

// Number is a named integer.
type Number int64

// Hex is a number that is stored as a text.
type Hex struct{ N int64 }

// Value returns the text.
func (h Hex) Value() (driver.Value, error) { return "x" + strconv.FormatInt(h.N, 16), nil }

// Scan reads the text, or an id.
func (h *Hex) Scan(src any) (err error) {
	switch v := src.(type) {
	case int64:
		h.N = v
	case string:
		h.N, err = strconv.ParseInt(strings.TrimPrefix(v, "x"), 16, 64)
	case []byte:
		h.N, err = strconv.ParseInt(strings.TrimPrefix(string(v), "x"), 16, 64)
	default:
		err = fmt.Errorf("a Hex from %T", src)
	}
	return err
}

// GormDataType returns a text type with a limit.
func (Hex) GormDataType() string { return "varchar(40)" }

// UUID is stored as a text of hexadecimal digits.
type UUID [16]byte

// Value returns the digits.
func (u UUID) Value() (driver.Value, error) { return hex.EncodeToString(u[:]), nil }

// Scan reads the digits.
func (u *UUID) Scan(src any) error {
	text, ok := src.(string)
	if b, isBytes := src.([]byte); isBytes {
		text, ok = string(b), true
	}
	if !ok {
		return fmt.Errorf("a UUID from %T", src)
	}
	_, err := hex.Decode(u[:], []byte(text))
	return err
}

// GormDataType returns a text type with a limit.
func (UUID) GormDataType() string { return "varchar(40)" }

// Strict has constraints of three kinds.
type Strict struct {
	ID   int64   `gorm:"primaryKey" keygen:""`
	Note *string `gorm:"size:40;not null;unique"`
	Size int     `gorm:"check:size > 0"`
}

// models returns all models.
func models() []any {
	return []any{
		&Customer{}, &Company{}, &Card{}, &Pet{}, &Note{}, &Label{}, &Badge{}, &Holding{},
		&Person{}, &Legacy{}, &Rated{}, &Invoice{}, &Line{}, &Derived{}, &Prefixed{}, &Based{}, &Hooked{}, &Dawn{},
		&Int64{}, &Uint64{}, &Int{}, &Named{}, &Pointer{}, &Nullable{}, &Scanned{}, &Text{}, &Decimal{}, &Encoded{}, &Binary{},
		&GormTagged{}, &DBTagged{}, &Narrow{}, &Strict{},
	}
}

// migrate creates the tables as a program without the plugin would: with AUTO_INCREMENT, so that a
// key that is not filled is a small number.
func migrate(t *testing.T, d Database) {
	t.Helper()
	db, err := gorm.Open(d.Dialector(d.Open(t)), &gorm.Config{Logger: logger.Discard, DisableForeignKeyConstraintWhenMigrating: true})
	must(t, err)
	must(t, db.SetupJoinTable(&Customer{}, "Badges", &Holding{}))
	must(t, db.AutoMigrate(models()...))
}

// empty deletes all rows.
func empty(t *testing.T, db *gorm.DB) {
	t.Helper()
	must(t, db.Session(&gorm.Session{AllowGlobalUpdate: true, SkipHooks: true}).Transaction(func(tx *gorm.DB) error {
		for _, model := range models() {
			if err := tx.Delete(model).Error; err != nil {
				return err
			}
		}
		return tx.Exec("DELETE FROM customer_labels").Error
	}))
}
