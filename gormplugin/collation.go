package gormplugin

import (
	"errors"
	"fmt"
	"regexp"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// plainText matches a type of text that says nothing about its collation.
var plainText = regexp.MustCompile(`(?i)^(var)?char(\(\d+\))?$|^(tiny|medium|long)?text$`)

// compareBytes gives the columns that lead to a shard by their texts a collation
// that goes by their bytes, unless the model chooses the type's. On SQLite they
// have it.
func compareBytes(d gorm.Dialector, s *schema.Schema, t *sharding.Table) {
	if d.Name() != "mysql" {
		return
	}
	for _, column := range t.Texts() {
		f := columnField(s, column)
		if f == nil {
			continue
		}
		if text := d.DataTypeOf(f); plainText.MatchString(text) {
			f.DataType = schema.DataType(text + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
		}
	}
}

// checkCollations refuses a table whose columns take keys for equal that its rules
// tell apart.
func (c *check) checkCollations(db *gorm.DB, t *sharding.Table, target sharding.Target) error {
	var errs []error
	for _, column := range t.Texts() {
		d, err := dialect.Named(db.Dialector.Name())
		if err != nil {
			return fmt.Errorf("gormplugin: %w", err)
		}
		collation, err := dialect.Folding(db.Statement.Context, c.router.DB(target.DB), d, target.Table, column)
		if err == nil && collation != "" {
			err = ErrCollation
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("gormplugin: shard %s: column %s (%s): %w", target, column, collation, err))
		}
	}
	return errors.Join(errs...)
}
