// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// shape is what must be equal in all shards of a table.
type shape struct {
	columns map[string]string // by name: type and NOT NULL
	order   []string          // their names as SELECT * returns them
	indexes map[string]string // by their columns: one of their names
}

// displayWidth is the width of a whole number, which MySQL 8 does not show, in contrast to MySQL 5.7 and MariaDB. It has
// no effect without ZEROFILL, except that drivers take tinyint(1) for a boolean, which all of them show.
var displayWidth = regexp.MustCompile(`^(tinyint|smallint|mediumint|int|bigint|year)\(\d+\)`)

func readShape(ctx context.Context, s session, t table) (shape, error) {
	out := shape{columns: map[string]string{}, indexes: map[string]string{}}
	columns, indexes := shapeQueries(s)
	err := s.each(ctx, func(rows *sql.Rows) error {
		var name, typ string
		err := rows.Scan(&name, &typ)
		out.columns[name], out.order = typ, append(out.order, name)
		if s.Name() == "mysql" && !strings.Contains(typ, "zerofill") && !strings.HasPrefix(typ, "tinyint(1)") {
			out.columns[name] = displayWidth.ReplaceAllString(typ, "$1")
		}
		return err
	}, columns, t.name)
	if err != nil {
		return out, err
	}
	if len(t.primaryKey) > 0 {
		out.indexes["primary key ("+strings.Join(t.primaryKey, ", ")+")"] = ""
	}
	return out, out.readIndexes(ctx, s, indexes, t.name)
}

func (sh shape) readIndexes(ctx context.Context, s session, query, table string) error {
	columns := map[string][]string{}
	unique := map[string]bool{}
	err := s.each(ctx, func(rows *sql.Rows) error {
		var name string
		var isUnique bool
		var column sql.NullString
		if err := rows.Scan(&name, &isUnique, &column); err != nil {
			return err
		}
		columns[name] = append(columns[name], cmp.Or(column.String, "an expression"))
		unique[name] = isUnique
		return nil
	}, query, table)
	for name, list := range columns {
		kind := "index"
		if unique[name] {
			kind = "unique index"
		}
		sh.indexes[kind+" ("+strings.Join(list, ", ")+")"] = name
	}
	return err
}

// shapeQueries returns queries for the columns of a table with their types, and for the
// columns of its indexes except the primary key.
func shapeQueries(s session) (columns, indexes string) {
	switch s.Name() {
	case "sqlite":
		return `SELECT name, lower(type) || CASE WHEN "notnull" THEN ' not null' ELSE '' END FROM pragma_table_info(?) ORDER BY cid`,
			`SELECT i.name, i."unique", x.name FROM pragma_index_list(?) i JOIN pragma_index_xinfo(i.name) x` +
				` WHERE i.origin <> 'pk' AND x.key ORDER BY i.name, x.seqno`
	case "postgres":
		return "SELECT a.attname::text, " + dialect.PostgresColumnType + " || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END" +
				" FROM pg_attribute a WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
			"SELECT i.relname::text, x.indisunique, pg_get_indexdef(x.indexrelid, u.n, true) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid" +
				" CROSS JOIN LATERAL generate_series(1, x.indnkeyatts::int) u (n)" +
				" WHERE x.indrelid = to_regclass(quote_ident($1)) AND NOT x.indisprimary ORDER BY i.relname, u.n"
	}
	return "SELECT COLUMN_NAME, CONCAT(COLUMN_TYPE, IF(IS_NULLABLE = 'YES', '', ' not null')) FROM information_schema.COLUMNS" +
			" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION",
		"SELECT INDEX_NAME, NON_UNIQUE = 0, CONCAT(COLUMN_NAME, IFNULL(CONCAT('(', SUB_PART, ')'), '')) FROM information_schema.STATISTICS" +
			" WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND INDEX_NAME <> 'PRIMARY' ORDER BY INDEX_NAME, SEQ_IN_INDEX"
}

// drift compares the shards of a table with the majority.
func drift(tables []*tableScan) []ShardFinding {
	tables = slices.DeleteFunc(slices.Clone(tables), func(scan *tableScan) bool { return scan.shape.columns == nil })
	columns, orders, indexes := poll{}, poll{}, poll{}
	for _, scan := range tables {
		columns.count(scan.shape.columns)
		orders.count(map[string]string{"": strings.Join(scan.shape.order, "\n")})
		indexes.count(scan.shape.indexes)
	}
	var found []ShardFinding
	for _, scan := range tables {
		before := len(scan.findings)
		scan.compareColumns(columns, len(tables))
		if len(scan.findings) == before {
			scan.compareOrder(orders)
		}
		scan.compareIndexes(indexes, len(tables))
		found = append(found, scan.findings[before:]...)
	}
	return found
}

// poll counts, for each name, how many shards give which definition of it.
type poll map[string]map[string]int

func (scan poll) count(said map[string]string) {
	for name, what := range said {
		if scan[name] == nil {
			scan[name] = map[string]int{}
		}
		scan[name][what]++
	}
}

// common reports whether at least half of the shards have the name.
func (scan poll) common(name string, shards int) bool {
	have := 0
	for _, n := range scan[name] {
		have += n
	}
	return 2*have >= shards
}

// most returns the definition that most shards have of a name; of equal counts, the first
// in order.
func (scan poll) most(name string) string {
	best := ""
	for _, what := range slices.Sorted(maps.Keys(scan[name])) {
		if best == "" || scan[name][what] > scan[name][best] {
			best = what
		}
	}
	return best
}

func (scan *tableScan) compareColumns(columns poll, shards int) {
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		typ, has := scan.shape.columns[name]
		most := columns.most(name)
		switch common := columns.common(name, shards); {
		case !has && slices.ContainsFunc(scan.routing(), func(key string) bool { return strings.EqualFold(key, name) }):
			// The check that needed the column has already reported it.
		case !has && common:
			scan.find(MissingColumn, Error, fmt.Sprintf("there is no column %s %s, which other shards have", name, most), "add it")
		case has && !common:
			scan.find(ExtraColumn, Warning, "most other shards have no column "+name, "add it there, or drop it here")
		case has && typ != most:
			scan.find(ColumnDiffers, Error, fmt.Sprintf("column %s is %s; in other shards it is %s", name, typ, most), "make the column the same in all shards")
		}
	}
}

// compareOrder finds a shard whose columns have another order than in most shards. If a shard lacks columns or
// has more, that is its finding, or the other shards'.
func (scan *tableScan) compareOrder(orders poll) {
	most := strings.Split(orders.most(""), "\n")
	if len(most) != len(scan.shape.order) {
		return
	}
	for i, name := range scan.shape.order {
		if name == most[i] {
			continue
		}
		scan.find(ColumnOrder, Warning, fmt.Sprintf("column %s is where other shards have %s, so that a query of * is refused when several shards answer it", name, most[i]),
			"move it, by MODIFY … AFTER on MySQL and MariaDB, or name the columns in queries, as GORM does with QueryFields")
		return
	}
}

func (scan *tableScan) compareIndexes(indexes poll, shards int) {
	for _, what := range slices.Sorted(maps.Keys(indexes)) {
		_, has := scan.shape.indexes[what]
		switch common := indexes.common(what, shards); {
		case !has && common:
			severity := Warning
			if !strings.HasPrefix(what, "index") {
				severity = Error // it keeps rows from repeating
			}
			scan.find(MissingIndex, severity, fmt.Sprintf("there is no %s, which other shards have", what), "create it")
		case has && !common:
			scan.find(ExtraIndex, Info, "most other shards have no "+what, "create it there, or drop it here")
		}
	}
}
