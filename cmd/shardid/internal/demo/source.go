// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/schema"
)

// source is the AUTO_INCREMENT database, opened read-only.
type source struct {
	path   string
	db     *sql.DB
	tx     *sql.Tx // a snapshot
	tables []*table
}

// openSource opens the file and reads the definitions of the table and, when it is not "",
// of its child.
func openSource(ctx context.Context, path, name, childName, childColumn string) (*source, error) {
	db, err := database.OpenFile(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &source{path: path, db: db}
	if err := s.read(ctx, name, childName, childColumn); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *source) close() error {
	if s.tx != nil {
		_ = s.tx.Rollback() // it was only used for reading
	}
	return s.db.Close()
}

func (s *source) read(ctx context.Context, name, childName, childColumn string) error {
	report, err := schema.Inspect(ctx, s.db)
	if err != nil {
		return err
	}
	if s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return err
	}
	parent, err := s.table(ctx, report, name)
	if err != nil {
		return err
	}
	s.tables = []*table{parent}
	if childName == "" {
		return nil
	}
	child, err := s.table(ctx, report, childName)
	if err != nil {
		return err
	}
	s.tables = append(s.tables, child)
	if err := s.relate(ctx, parent, child, childColumn); err != nil {
		return err
	}
	return checkReference(report, parent, child)
}

// table reads the definition and the number of rows of one table.
func (s *source) table(ctx context.Context, report schema.Report, name string) (*table, error) {
	found, err := pick(report, name)
	if err != nil {
		return nil, err
	}
	if err := usable(found); err != nil {
		return nil, err
	}
	t := &table{name: found.Name, key: found.Key.Column, by: found.Key.Column, next: int64(found.Key.Next)}
	for _, f := range found.Findings {
		if f.Code == schema.UniqueKey {
			t.unique = append(t.unique, f.Message)
		}
	}
	if err := checkName("table", t.name+"_00"); err != nil {
		return nil, err
	}
	if err := s.readColumns(ctx, t); err != nil {
		return nil, err
	}
	t.keyAt = t.index(t.key)
	t.byAt = t.keyAt
	err = s.tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+quote(t.name)).Scan(&t.rows)
	if err == nil && t.rows == 0 {
		err = input.Errorf("table %s is empty; name one with rows", t.name)
	}
	return t, err
}

func pick(report schema.Report, name string) (schema.Table, error) {
	var names []string
	for _, t := range report.Tables {
		if strings.EqualFold(t.Name, name) {
			return t, nil
		}
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return schema.Table{}, input.Errorf("there is no table %q: the file has no tables", dialect.RedactDSN(name))
	}
	return schema.Table{}, input.Errorf("there is no table %q; the tables are %s", dialect.RedactDSN(name), strings.Join(names, ", "))
}

// usable refuses tables whose rows have no single integer key.
func usable(t schema.Table) error {
	for _, f := range t.Findings {
		if t.Key == nil && f.Severity == schema.Error || f.Code == schema.BeyondInt64 {
			return input.Errorf("table %s cannot be sharded by its key: %s; name a table with a single integer key", t.Name, f.Message)
		}
	}
	if t.Key.Next > uint64(1)<<62 {
		return input.Errorf("table %s cannot be sharded: its next id is %d, which leaves no room for new ones; move the outlying rows to lower ids", t.Name, t.Key.Next)
	}
	return nil
}

func (s *source) readColumns(ctx context.Context, t *table) error {
	var create string
	err := s.tx.QueryRowContext(ctx, "SELECT l.strict, s.sql FROM pragma_table_list l JOIN sqlite_schema s ON s.type = 'table' AND s.name = l.name"+
		" WHERE l.schema = 'main' AND l.name = ?", t.name).Scan(&t.strict, &create)
	if err != nil {
		return fmt.Errorf("read the definition of %s: %w", t.name, err)
	}
	collations := collationsOf(create)
	rows, err := s.tx.QueryContext(ctx, `SELECT name, type, "notnull", dflt_value, hidden FROM pragma_table_xinfo(?) ORDER BY cid`, t.name)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err returns every error
	for rows.Next() {
		c, err := scanColumn(rows, t.name)
		if err != nil {
			return err
		}
		c.collation = collations[strings.ToLower(c.name)]
		t.columns = append(t.columns, c)
	}
	return rows.Err()
}

func scanColumn(rows *sql.Rows, table string) (column, error) {
	var c column
	var fallback sql.NullString
	var hidden int
	if err := rows.Scan(&c.name, &c.typ, &c.notNull, &fallback, &hidden); err != nil {
		return c, err
	}
	c.fallback = fallback.String
	shown := table + "." + c.name
	switch {
	case hidden != 0:
		return c, input.Errorf("column %s is computed by the database; the demo only copies tables without generated columns", shown)
	case !plainType.MatchString(c.typ):
		return c, input.Errorf("column %s has the unusual type %q; the demo cannot declare it", shown, c.typ)
	}
	return c, checkName("column", c.name)
}

// relate makes the sharding key of parent the one of child, too.
func (s *source) relate(ctx context.Context, parent, child *table, column string) error {
	i := child.index(column)
	switch {
	case parent.name == child.name:
		return input.Errorf("--child names the table %s itself; name another table", parent.name)
	case i < 0:
		return input.Errorf("table %s has no column %q; its columns are %s", child.name, dialect.RedactDSN(column), strings.Join(child.names(), ", "))
	}
	child.by, child.byAt = child.columns[i].name, i
	var strays int64
	err := s.tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+quote(child.name)+" WHERE typeof("+quote(child.by)+") <> 'integer'").Scan(&strays)
	if err == nil && strays > 0 {
		err = input.Errorf("%s.%s holds no integer in %d of its rows, so their parents are unknown; name the column that refers to %s.%s", child.name, child.by, strays, parent.name, parent.key)
	}
	return err
}

// checkReference refuses a column with a foreign key to another table.
func checkReference(report schema.Report, parent, child *table) error {
	found, err := pick(report, child.name)
	if err != nil {
		return err
	}
	for _, fk := range found.ForeignKeys {
		if len(fk.Columns) == 1 && strings.EqualFold(fk.Columns[0], child.by) && !strings.EqualFold(fk.References, parent.name) {
			return input.Errorf("%s.%s refers to table %s; name the column that refers to %s.%s", child.name, child.by, fk.References, parent.name, parent.key)
		}
	}
	return nil
}

func (t *table) names() []string {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return names
}

// collationsOf parses the COLLATE of each column from a CREATE TABLE statement, because no
// pragma returns it. Column names are in lower case.
func collationsOf(create string) map[string]string {
	found := map[string]string{}
	s := sqltext.NewScanner(create, sqltext.SQLite)
	var name string
	var previous sqltext.Token
	depth := 0
	for {
		t, ok := s.NextCode()
		if !ok {
			return found
		}
		switch {
		case depth == 1 && (previous.Is(create, "(") || previous.Is(create, ",")):
			name = strings.ToLower(ident(create, t))
		case depth == 1 && previous.Is(create, "COLLATE"):
			found[name] = ident(create, t)
		}
		depth += nesting(create, t)
		previous = t
	}
}

func nesting(sql string, t sqltext.Token) int {
	switch {
	case t.Is(sql, "("):
		return 1
	case t.Is(sql, ")"):
		return -1
	}
	return 0
}

// ident also accepts 'name', as SQLite does where a name is needed.
func ident(sql string, t sqltext.Token) string {
	if t.Kind == sqltext.String {
		return strings.ReplaceAll(strings.Trim(t.Text(sql), "'"), "''", "'")
	}
	return sqltext.Ident(sql, t)
}
