// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/sharding"
)

// hintOmit removes the repetitions of a refusal, which gorm joins for each relation that it tries to write after it. If the row of
// an association may not be written because its table is a broadcast table, it says how to leave the row out.
func (r *routing) hintOmit(db *gorm.DB) {
	var refusal *sharding.RouteError
	if db.Error == nil || !errors.As(db.Error, &refusal) {
		return
	}
	if strings.Trim(strings.ReplaceAll(db.Error.Error(), refusal.Error(), ""), "; ") == "" {
		db.Error = refusal
	}
	stmt := db.Statement
	if stmt.Schema == nil || !r.router.IsBroadcast(refusal.Table) || !errors.Is(refusal, sharding.ErrCrossDatabase) || strings.EqualFold(stmt.Table, refusal.Table) {
		return
	}
	names, keys, join := relationsTo(stmt.Schema, refusal.Table, "")
	if len(names) == 0 {
		return
	}
	model := strings.ToLower(stmt.Schema.Name[:1]) + stmt.Schema.Name[1:]
	way := fmt.Sprintf("db.Omit(%s).Create(&%s) (or Save)", strings.Join(names, ", "), model)
	if join != "" {
		way += fmt.Sprintf(", db.Model(&%s).Omit(%s).Association(%q).Append(…)", model, strings.Join(names, ", "), join)
	}
	if len(keys) > 0 {
		way += ", with " + strings.Join(keys, ", ") + " set, which gorm then leaves as it is"
	}
	db.Error = &sharding.RouteError{Op: refusal.Op, Table: refusal.Table, Err: refusal.Err, Hint: "it is written in every database; write it outside of the transaction, " +
		"and leave it out of this one by " + way + ", or let transactions span databases with sharding.Transactions, Atomic or BestEffort"}
}

// relationsTo returns what Omit has to name so that the associations of a model in a table are not written, the foreign keys
// that gorm then does not set, and the name of a many-to-many relation among them. It looks for them in associations and in the
// associations of these.
func relationsTo(s *schema.Schema, table, path string) (names, keys []string, join string) {
	for _, rel := range relations(s) {
		name := path + rel.Name
		switch direct := strings.EqualFold(rel.FieldSchema.Table, table); {
		case direct && rel.JoinTable != nil:
			names, join = append(names, strconv.Quote(name+".*")), name
		case direct:
			names = append(names, strconv.Quote(name))
			for _, ref := range rel.References {
				if !ref.OwnPrimaryKey {
					keys = append(keys, path+ref.ForeignKey.Name)
				}
			}
		case path == "":
			deeper, deeperKeys, _ := relationsTo(rel.FieldSchema, table, name+".")
			names, keys = append(names, deeper...), append(keys, deeperKeys...)
		}
	}
	return names, keys, join
}
