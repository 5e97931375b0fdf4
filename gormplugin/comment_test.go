// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// beside puts a text before and after a clause, as gorm.io/hints does with comments.
type beside struct{ clause, before, behind string }

func (b beside) Build(clause.Builder) {}

func (b beside) ModifyStatement(stmt *gorm.Statement) {
	c := stmt.Clauses[b.clause]
	if b.before != "" {
		c.BeforeExpression = clause.Expr{SQL: b.before}
	}
	if b.behind != "" {
		c.AfterExpression = clause.Expr{SQL: b.behind}
	}
	stmt.Clauses[b.clause] = c
}

func TestCommentsBesideClausesChangeNothing(t *testing.T) {
	c := newClusterWith(t, sharding.FanOutReads)
	whole := c.beside(t)
	for name, query := range map[string]func(db *gorm.DB) (any, error){
		"many": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Clauses(beside{"SELECT", "/* trace=1 */", ""}, beside{"WHERE", "", "/* a */ /*+ b */"}).Where("id IN ?", []int{3, 1, 2}).Order("id"))
		},
		"all": func(db *gorm.DB) (any, error) {
			return count(db.Model(&Order{}).Clauses(beside{"SELECT", "/* trace=1 */", ""}))
		},
		"of other servers": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Clauses(beside{"SELECT", "/*M!100100 x */", ""}, beside{"WHERE", "", "/*! OR 1 */ -- a"}).Where("id IN ?", []int{3, 1, 2}))
		},
		"limit": func(db *gorm.DB) (any, error) {
			return asMaps(db.Model(&Order{}).Clauses(beside{"LIMIT", "", "/* x */"}, beside{"ORDER BY", "/* y */", ""}).Order("id DESC").Limit(3))
		},
	} {
		likeOneTable(t, c, whole, name, query)
	}
	c.rec.take()
	if err := c.Clauses(beside{"WHERE", "", "/* one shard */"}).Find(&[]Order{}, "id = ?", 5).Error; err != nil {
		t.Error(err)
	}
	sameEvents(t, c.rec.take(), "db1: SELECT * FROM `orders_1` AS `orders` WHERE id = ? /* one shard */")
}

func TestTextBesideAClauseThatIsNoCommentProvesNothing(t *testing.T) {
	c := newCluster(t)
	for _, text := range []string{"OR 1", "/* a */ OR 1 /* b */", "/* a */ OR /*! 1 */ 1", "# a"} {
		if err := c.Clauses(beside{"WHERE", "", text}).Find(&[]Order{}, "id = ?", 5).Error; !errors.Is(err, sharding.ErrMissingKey) && !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("%s: %v", text, err)
		}
		if err := c.Clauses(beside{"SELECT", text, ""}).Find(&[]Order{}, "id IN ?", []int{1, 2}).Error; !errors.Is(err, sharding.ErrUnmergeable) && !errors.Is(err, sharding.ErrRawTable) {
			t.Errorf("%s: %v", text, err)
		}
	}
	sameEvents(t, c.rec.take())
}
