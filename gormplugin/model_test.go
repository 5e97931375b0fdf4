// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

type (
	// Article has an id of its own, and one in an embedded struct.
	Article struct {
		ID     int64
		Title  string
		Writer Writer `gorm:"embedded;embeddedPrefix:writer_"`
	}
	// Writer is known by an id that no generator gives.
	Writer struct {
		ID   int64
		Name string
	}
	// Review has ids in embedded structs only.
	Review struct {
		Article  Key    `gorm:"embedded;embeddedPrefix:article_"`
		Reviewer Writer `gorm:"embedded;embeddedPrefix:reviewer_"`
	}
	// Key is embedded.
	Key struct {
		ID int64 `gorm:"primaryKey"`
	}
	// Comment has one id.
	Comment struct {
		Key  Key `gorm:"embedded"`
		Text string
	}
)

// registered returns a plugin that fills one field of a model from 100 on.
func registered(model any, field string) *gormplugin.Plugin {
	return gormplugin.New(gormplugin.Config{
		Generators: keygen.Set{Default: keygen.Counting(100, 1)},
		Models:     []gormplugin.Model{{Struct: model, Tags: map[string]string{field: ""}}},
	})
}

func TestARegisteredNameIsTheModelsOwnField(t *testing.T) {
	for field, want := range map[string]Article{
		"ID":        {ID: 100},
		"Writer.ID": {ID: 1, Writer: Writer{ID: 100}},
	} {
		db := openGORM(t, memory(t))
		if err := db.AutoMigrate(&Article{}); err != nil {
			t.Fatal(err)
		}
		if err := db.Use(registered(&Article{}, field)); err != nil {
			t.Fatal(err)
		}
		var article Article
		if err := db.Create(&article).Error; err != nil || article != want {
			t.Errorf("%s: %+v, %v; want %+v", field, article, err, want)
		}
	}
}

func TestANameInAMapDenotesTheSameFieldAsForGORM(t *testing.T) {
	db := openGORM(t, memory(t))
	if err := db.AutoMigrate(&Article{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Use(registered(&Article{}, "ID")); err != nil {
		t.Fatal(err)
	}
	row := map[string]any{"ID": 5, "Title": "t"} // the writer's, the last one of the name
	if err := db.Model(&Article{}).Create(row).Error; err != nil {
		t.Fatal(err)
	}
	var article Article
	if err := db.Select("id", "title", "writer_id").Take(&article).Error; err != nil || article != (Article{ID: 100, Title: "t", Writer: Writer{ID: 5}}) {
		t.Errorf("%+v, %v", article, err)
	}
}

func TestARegisteredNameMayBeTheOnlyOneInEmbeddedStructs(t *testing.T) {
	for _, field := range []string{"ID", "Key.ID"} {
		db := openGORM(t, memory(t))
		if err := db.AutoMigrate(&Comment{}); err != nil {
			t.Fatal(err)
		}
		if err := db.Use(registered(&Comment{}, field)); err != nil {
			t.Fatal(err)
		}
		var comment Comment
		if err := db.Create(&comment).Error; err != nil || comment.Key.ID != 100 {
			t.Errorf("%s: %+v, %v", field, comment, err)
		}
	}
}

func TestARegisteredNameOfNoFieldOrOfSeveralIsRefused(t *testing.T) {
	for field, want := range map[string]string{
		"ID":     `several fields "ID"; write "Article.ID" or "Reviewer.ID"`,
		"Number": `no column for a field "Number"`,
	} {
		err := openGORM(t, memory(t)).Use(registered(&Review{}, field))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", field, err, want)
		}
	}
}
