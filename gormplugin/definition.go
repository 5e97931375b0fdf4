package gormplugin

import (
	"strings"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/sqltext"
)

// isAutoincrement reports whether a table of SQLite numbers its rows with
// AUTOINCREMENT, which no driver tells.
func isAutoincrement(db *gorm.DB, table string) (bool, error) {
	var texts []string
	err := db.Raw("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", table).Scan(&texts).Error
	if err != nil || len(texts) == 0 {
		return false, err
	}
	scanner := sqltext.NewScanner(texts[0], sqltext.SQLite)
	for t, ok := scanner.NextCode(); ok; t, ok = scanner.NextCode() {
		if t.Kind == sqltext.Word && strings.EqualFold(t.Text(texts[0]), "AUTOINCREMENT") {
			return true, nil
		}
	}
	return false, nil
}
