package gormplugin_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"

	"github.com/shardid/shardid/sharding"
)

// keepTexts does to db what a cache of queries does, which keeps answers by the text.
func keepTexts(t *testing.T, db *gorm.DB) {
	t.Helper()
	core := db.Callback().Query().Get("gorm:query")
	if err := db.Callback().Query().Replace("gorm:query", func(db *gorm.DB) { callbacks.BuildQuerySQL(db); core(db) }); err != nil {
		t.Fatal(err)
	}
}

func TestAQueryThatAnotherPluginHasWrittenSaysWhatToDo(t *testing.T) {
	c := newCluster(t)
	keepTexts(t, c.DB)
	err := c.Find(&[]Order{}, "id = ?", 5).Error
	if !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(err.Error(), "another plugin") {
		t.Error(err)
	}
	if err := c.Find(&[]User{}).Error; err != nil {
		t.Errorf("a table that is not sharded: %v", err)
	}
	sameEvents(t, c.rec.take(), "home: SELECT * FROM `users`")
}
