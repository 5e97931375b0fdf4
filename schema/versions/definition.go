// SPDX-License-Identifier: Apache-2.0

package versions

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
	"github.com/shardid/shardid/internal/sqlrun"
	"github.com/shardid/shardid/internal/sqltext"
)

// compareNames orders names by length first, so that orders_10 follows orders_9.
func compareNames(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// definitionOf returns the definitions of a statement's own tables, one after the other,
// with logical names.
func (s *session) definitionOf(ctx context.Context, on dialect.Querier, step *Step) (string, error) {
	var b strings.Builder
	for _, table := range step.own {
		lines, err := s.definition(ctx, on, table, step.around)
		if err != nil {
			return "", err
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return b.String(), nil
}

// nothing is the result of definitionOf when none of the tables exists.
func nothing(step *Step) string { return strings.Repeat("\n", len(step.own)) }

// definition returns the lines that define a table; none when there is no such table.
func (s *session) definition(ctx context.Context, on dialect.Querier, table string, physical map[string]string) ([]string, error) {
	lines, err := s.rawDefinition(ctx, on, table)
	if err != nil {
		return nil, fmt.Errorf("read the definition of %s: %w", table, err)
	}
	for i, line := range lines {
		lines[i] = logical(line, s.flavor, physical)
	}
	return lines, nil
}

// numberedFrom is the next number of a table, which differs between shards.
var numberedFrom = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

func (s *session) rawDefinition(ctx context.Context, on dialect.Querier, table string) (lines []string, err error) {
	switch s.Name() {
	case "sqlite":
		return s.lines(ctx, on, "SELECT sql FROM sqlite_master WHERE tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL AND type IN ('table', 'index') ORDER BY type DESC, name", table)
	case "postgres":
		return s.lines(ctx, on, postgresDefinition, table)
	}
	there, err := s.lines(ctx, on, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", table)
	if err != nil || len(there) == 0 {
		return nil, err
	}
	var shown, text string
	if err := on.QueryRowContext(ctx, "SHOW CREATE TABLE "+s.Quote(table)).Scan(&shown, &text); err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(numberedFrom.ReplaceAllString(text, ""), "\n") {
		lines = append(lines, strings.TrimSuffix(strings.TrimSpace(line), ","))
	}
	// Constraints are listed in the order of their names, which end with the physical table's.
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "CONSTRAINT ") })
	if end := len(lines) - 1; at >= 0 && at < end {
		slices.Sort(lines[at:end])
	}
	return lines, nil
}

func (s *session) lines(ctx context.Context, on dialect.Querier, query string, args ...any) (all []string, err error) {
	err = sqlrun.Each(ctx, on, func(rows *sql.Rows) error {
		var line string
		err := rows.Scan(&line)
		all = append(all, line)
		return err
	}, query, args...)
	return all, err
}

const postgresDefinition = `SELECT line FROM (
SELECT 0 AS part, a.attnum::int AS n, 'column ' || quote_ident(a.attname) || ' ' || ` + dialect.PostgresColumnType + `
  || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || CASE a.attidentity::text WHEN '' THEN '' ELSE ' IDENTITY ' || a.attidentity::text END
  || CASE a.attgenerated::text WHEN '' THEN ' DEFAULT ' ELSE ' GENERATED ' END || COALESCE(pg_get_expr(d.adbin, d.adrelid), 'none')
  || COALESCE(' COLLATE ' || quote_ident(l.collname), '') || COALESCE(' COMMENT ' || quote_literal(col_description(a.attrelid, a.attnum)), '') AS line
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 1, 0, 'constraint ' || quote_ident(conname) || ' ' || pg_get_constraintdef(oid)
FROM pg_constraint WHERE conrelid = to_regclass(quote_ident($1)) AND contype <> 'n'
UNION ALL SELECT 2, 0, pg_get_indexdef(indexrelid) || CASE WHEN indisvalid THEN '' ELSE ' INVALID' END
FROM pg_index WHERE indrelid = to_regclass(quote_ident($1))
UNION ALL SELECT 3, 0, 'comment ' || quote_literal(obj_description(c.oid, 'pg_class')) FROM pg_class c
WHERE c.oid = to_regclass(quote_ident($1)) AND obj_description(c.oid, 'pg_class') IS NOT NULL) parts ORDER BY part, n, line`

// logical replaces physical names in a line of a definition by logical ones, removes quotes
// of names, and leaves one space between tokens.
func logical(line string, flavor sqltext.Flavor, physical map[string]string) string {
	s := sqltext.NewScanner(line, flavor)
	var b strings.Builder
	for {
		t, ok := s.NextCode()
		if !ok {
			return b.String()
		}
		text := t.Text(line)
		switch t.Kind {
		case sqltext.Word, sqltext.QuotedIdent:
			text = logicalName(sqltext.Ident(line, t), physical)
		case sqltext.String: // a sequence's name in a default
			for _, table := range byLength(physical) {
				text = strings.ReplaceAll(text, physical[table]+"_", table+"_")
			}
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(text)
	}
}

// logicalName undoes ownName, and removes the table's name from constraint names that
// databases make.
func logicalName(text string, physical map[string]string) string {
	for _, table := range byLength(physical) {
		there := physical[table]
		if fold(text) == fold(there) {
			return table
		}
		if rest, ok := strings.CutSuffix(text, "_"+there); ok {
			return rest
		}
		if rest, ok := strings.CutPrefix(text, there+"_"); ok {
			return table + "_" + rest
		}
		if before, after, ok := strings.Cut(text, "_"+there+"_"); ok { // GORM's idx_orders_0_status
			return before + "_" + table + "_" + after
		}
	}
	return text
}

// byLength returns the logical names, those of the longest physical names first: idx_order_items_0
// is an index of order_items_0, also where there is a table items_0.
func byLength(physical map[string]string) []string {
	return slices.SortedFunc(maps.Keys(physical), func(a, b string) int {
		return cmp.Or(len(physical[b])-len(physical[a]), strings.Compare(a, b))
	})
}
