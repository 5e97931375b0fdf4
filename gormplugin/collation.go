package gormplugin

import (
	"errors"
	"fmt"
	"regexp"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/keycolumn"
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

// checkKeyColumns refuses a table whose columns do not keep and compare keys as its
// rules take them. What concerns only keys that may never come is left to doctor.
func (c *check) checkKeyColumns(db *gorm.DB, t *sharding.Table, target sharding.Target) error {
	d, err := dialect.Named(db.Dialector.Name())
	if err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	faults, err := keycolumn.Inspect(db.Statement.Context, c.router.DB(target.DB), d, t, target.Table)
	if err != nil {
		return fmt.Errorf("gormplugin: shard %s: %w", target, err)
	}
	var errs []error
	for _, f := range faults {
		sentinel := ErrKeyColumn
		if f.Collation {
			sentinel = ErrCollation
		}
		if f.Severity > keycolumn.Notice {
			errs = append(errs, fmt.Errorf("gormplugin: shard %s: column %s: %w: %s; %s", target, f.Column, sentinel, f.Message, f.Fix))
		}
	}
	return errors.Join(errs...)
}
