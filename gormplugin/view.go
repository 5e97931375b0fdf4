package gormplugin

import (
	"database/sql"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/sharding"
)

// view is what the router knew at one moment, with all that statements need of
// it at hand. It is immutable.
type view struct {
	snapshot *sharding.Snapshot
	tables   []*sharded
}

// sharded is a sharded table in a view.
type sharded struct {
	routing *routing
	// snapshot is what the router knew when a statement began. All decisions about
	// it are made by this one, whatever is swapped meanwhile.
	snapshot *sharding.Snapshot
	table    *sharding.Table                        // of the snapshot
	alias    string                                 // what qualifies its columns in the statement: its name, or what Table("orders AS o") says
	place    func(key any) (sharding.Target, error) // table.Target, which takes memory to make
	spots    map[sharding.Target]*spot
}

// spot is a physical table.
type spot struct {
	target sharding.Target
	db     *sql.DB
	expr   clause.Expr // "orders_3" AS "orders"
	// The clauses that name the table and nothing else, as gorm writes them letter
	// by letter.
	insert, update, from string
}

// view returns the snapshot's, which is made when it is asked for first.
func (r *routing) view(snapshot *sharding.Snapshot) *view {
	if v := r.seen.Load(); v != nil && v.snapshot == snapshot {
		return v
	}
	v := &view{snapshot: snapshot}
	for _, given := range snapshot.Tables() {
		table, _ := snapshot.Lookup(given.Name)
		t := &sharded{routing: r, snapshot: snapshot, table: table, alias: table.Name, place: table.Target, spots: map[sharding.Target]*spot{}}
		for _, target := range table.Map.Targets() {
			t.spots[target] = t.newSpot(target)
		}
		v.tables = append(v.tables, t)
	}
	r.seen.Store(v)
	return v
}

// of returns the table with this logical name, in any case, nil if there is none.
func (v *view) of(name string) *sharded {
	for _, t := range v.tables {
		if isSameName(name, t.table.Name) {
			return t
		}
	}
	return nil
}

// isSameName reports whether two names of tables or columns mean the same.
func isSameName(a, b string) bool {
	return a == b || strings.EqualFold(a, b)
}

// as returns the same table for a statement that calls it otherwise.
func (t *sharded) as(alias string) *sharded {
	called := *t
	called.alias, called.spots = alias, nil
	return &called
}

func (t *sharded) newSpot(target sharding.Target) *spot {
	physical := t.routing.quote(target.Table)
	alias := physical + " AS " + t.routing.quote(t.alias)
	return &spot{
		target: target, db: t.routing.router.DB(target.DB), expr: clause.Expr{SQL: alias},
		insert: "INSERT INTO " + physical, update: "UPDATE " + alias, from: "FROM " + alias,
	}
}

// spot returns a physical table of the table's.
func (t *sharded) spot(target sharding.Target) *spot {
	if p := t.spots[target]; p != nil {
		return p
	}
	return t.newSpot(target)
}

// read returns what the conditions of stmt prove about targets.
func (t *sharded) read(stmt *gorm.Statement) reader[sharding.Target] {
	read := reader[sharding.Target]{stmt: stmt, table: t.table, alias: t.alias, fragments: t.routing.texts, place: t.place}
	if len(t.table.Also) > 0 {
		read.also = func(column string) func(any) (sharding.Target, error) { return also(t.table, column) }
	}
	return read
}

// isBare reports whether a clause is nothing but its name and its expression.
func isBare(c *clause.Clause) bool {
	return c.Name != "" && c.Builder == nil && c.BeforeExpression == nil && c.AfterNameExpression == nil && c.AfterExpression == nil
}
