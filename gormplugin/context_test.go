// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/writehint"
)

// tracer gives each statement a context of its own, as gorm's plugin for OpenTelemetry does: what it puts
// around the context before a statement, it looks for and takes off after it.
type tracer struct{ begun, ended, hinted int }

type traced struct {
	context.Context
	parent context.Context
}

func (*tracer) Name() string { return "tracer" }

func (p *tracer) Initialize(db *gorm.DB) error {
	begin := func(db *gorm.DB) {
		p.begun++
		db.Statement.Context = traced{db.Statement.Context, db.Statement.Context}
	}
	end := func(db *gorm.DB) {
		if s, ok := db.Statement.Context.(traced); ok {
			p.ended++
			db.Statement.Context = s.parent
		}
		if h := writehint.Of(db.Statement.Context, db.Statement.Table); h.Keyed || h.Model || len(h.Fresh) > 0 {
			p.hinted++
		}
	}
	cb := db.Callback()
	return errors.Join(
		cb.Create().Before("gorm:create").Register("tracer:begin", begin), cb.Create().After("gorm:create").Register("tracer:end", end),
		cb.Update().Before("gorm:update").Register("tracer:begin", begin), cb.Update().After("gorm:update").Register("tracer:end", end),
		cb.Delete().Before("gorm:delete").Register("tracer:begin", begin), cb.Delete().After("gorm:delete").Register("tracer:end", end),
		cb.Query().Before("gorm:query").Register("tracer:begin", begin), cb.Query().After("gorm:query").Register("tracer:end", end),
	)
}

func TestAPluginThatTracesStatementsFindsItsContextAfterEachOfThem(t *testing.T) {
	c := newCluster(t)
	p := &tracer{}
	if err := c.Use(p); err != nil {
		t.Fatal(err)
	}
	o := Order{Note: "a", Items: []Item{{SKU: "x"}}}
	err := errors.Join(c.Create(&o).Error, c.Model(&o).Update("note", "b").Error, c.Save(&o).Error, c.First(&o).Error, c.Delete(&o.Items[0]).Error)
	if err != nil || p.begun < 7 || p.ended != p.begun {
		t.Errorf("%d statements begun, %d ended, %v", p.begun, p.ended, err)
	}
	if p.hinted > 0 {
		t.Errorf("the hints of %d statements are in the context of those that follow", p.hinted)
	}
}
