// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

var (
	errEnd  = errors.New("it ends too early")
	errKind = errors.New("only CREATE, ALTER, DROP and RENAME TABLE, CREATE and DROP INDEX, and COMMENT ON TABLE and COLUMN are allowed; create types, extensions and functions in each database before, and triggers on each physical table after")
	errMore = errors.New("the text after it is not understood")
)

// statement reads the whole statement.
func (r *reader) statement() error {
	switch {
	case r.skip("CREATE", "TABLE"):
		return r.createTable()
	case r.is("CREATE"):
		return r.createIndex()
	case r.skip("ALTER", "TABLE"):
		return r.alterTable()
	case r.skip("DROP", "TABLE"):
		return r.dropTable()
	case r.skip("DROP", "INDEX"):
		return r.dropIndex()
	case r.skip("RENAME", "TABLE"):
		return r.renameTable()
	case r.skip("COMMENT", "ON"):
		return r.comment()
	}
	return errKind
}

func (r *reader) createTable() error {
	r.skip("IF", "NOT", "EXISTS")
	table, err := r.table()
	if err != nil {
		return err
	}
	r.out.own = 1
	if !r.is("(") && !r.is("LIKE") {
		return errors.New(`expected its columns in parentheses; AS SELECT, OF and PARTITION OF are not allowed`)
	}
	return r.rest(table, false)
}

func (r *reader) createIndex() error {
	r.skip("CREATE")
	r.any("UNIQUE", "FULLTEXT", "SPATIAL")
	if !r.skip("INDEX") {
		return errKind
	}
	r.skip("CONCURRENTLY")
	r.skip("IF", "NOT", "EXISTS")
	if r.is("ON") {
		return errors.New("give the index a name")
	}
	index, t, err := r.ident()
	if err != nil {
		return err
	}
	if r.skip("USING") {
		r.at++
	}
	if !r.skip("ON") {
		return errMore
	}
	r.skip("ONLY")
	table, err := r.table()
	if err != nil {
		return err
	}
	r.out.own = 1
	if r.dialect != "mysql" {
		r.out.names = append(r.out.names, name{Token: t, kind: indexName, text: index, table: table})
	}
	r.known.index(index, table)
	return r.rest(table, false)
}

func (r *reader) dropTable() error {
	r.skip("IF", "EXISTS")
	for {
		if _, err := r.table(); err != nil {
			return err
		}
		if !r.skip(",") {
			break
		}
	}
	r.out.own, r.out.dropsTables = len(r.out.tables), true
	r.any("CASCADE", "RESTRICT")
	return r.end()
}

func (r *reader) dropIndex() error {
	r.skip("CONCURRENTLY")
	r.skip("IF", "EXISTS")
	index, t, err := r.ident()
	if err != nil {
		return err
	}
	if r.dialect == "mysql" {
		if !r.skip("ON") {
			return errors.New("name its table: DROP INDEX name ON table")
		}
		table, err := r.table()
		if err != nil {
			return err
		}
		r.out.own = 1
		return r.actions(table)
	}
	r.out.drops = index
	r.out.names = append(r.out.names, name{Token: t, kind: indexName, text: index})
	r.any("CASCADE", "RESTRICT")
	return r.end()
}

func (r *reader) renameTable() error {
	for {
		if _, err := r.table(); err != nil {
			return err
		}
		if !r.skip("TO") {
			return errMore
		}
		if _, err := r.table(); err != nil {
			return err
		}
		if !r.skip(",") {
			break
		}
	}
	r.out.own = len(r.out.tables)
	return r.end()
}

func (r *reader) comment() error {
	column := r.skip("COLUMN")
	if !column && !r.skip("TABLE") {
		return errKind
	}
	text, t, err := r.ident()
	if err != nil {
		return err
	}
	r.out.names = append(r.out.names, name{Token: t, kind: tableName, text: text})
	r.out.add(text)
	r.out.own = 1
	if column {
		if !r.skip(".") {
			return errMore
		}
		if _, _, err := r.ident(); err != nil {
			return err
		}
	}
	if !r.skip("IS") || r.done() {
		return errMore
	}
	r.at++
	return r.end()
}

func (r *reader) end() error {
	if !r.done() {
		return errMore
	}
	return nil
}

// verbs are the words that begin an allowed action of ALTER TABLE.
var verbs = []string{
	"ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME", "VALIDATE", "SET", "RESET", "ENGINE", "COMMENT", "CONVERT", "CHARACTER",
	"CHARSET", "DEFAULT", "COLLATE", "ROW_FORMAT", "AUTO_INCREMENT", "ALGORITHM", "LOCK", "FORCE", "KEY_BLOCK_SIZE", "STATS_PERSISTENT",
}

func (r *reader) alterTable() error {
	r.skip("IF", "EXISTS")
	r.skip("ONLY")
	table, err := r.table()
	if err != nil {
		return err
	}
	r.out.own = 1
	if r.done() {
		return errEnd
	}
	return r.actions(table)
}

// actions reads the actions on a table, up to the end.
func (r *reader) actions(table string) error {
	for !r.done() {
		begin := r.at
		if !slices.ContainsFunc(verbs, func(v string) bool { return r.is(v) }) {
			return fmt.Errorf("%s is not allowed or not known", r.tokens[r.at].Text(r.sql))
		}
		if err := r.action(table); err != nil {
			return err
		}
		if r.at == begin {
			r.at++
		}
		if err := r.rest(table, true); err != nil {
			return err
		}
	}
	return nil
}

// action reads the names at the beginning of an action.
func (r *reader) action(table string) error {
	switch {
	case r.skip("RENAME"):
		return r.rename(table)
	case r.is("SET", "SCHEMA"):
		return errors.New("a table cannot change its schema")
	case r.skip("DROP", "FOREIGN", "KEY"), r.skip("DROP", "CHECK"):
		r.skip("IF", "EXISTS")
		_, err := r.owned(constraintName, table)
		return err
	}
	return nil
}

func (r *reader) rename(table string) error {
	switch {
	case r.any("COLUMN", "INDEX", "KEY") != "":
		return nil
	case r.skip("CONSTRAINT"):
		if _, err := r.owned(constraintName, table); err != nil || !r.skip("TO") {
			return cmp.Or(err, errMore)
		}
		renamed, err := r.owned(constraintName, table)
		r.known.constraint(table, renamed, true)
		return err
	case r.any("TO", "AS") != "" || r.dialect == "mysql" && r.at == len(r.tokens)-1:
		_, err := r.table()
		r.out.own = len(r.out.tables)
		return err
	}
	return nil
}

// foreign are words after which names of other objects follow in ways that the reader does
// not understand.
var foreign = []string{"SELECT", "INHERIT", "INHERITS", "ATTACH", "DETACH", "EXCHANGE", "UNION", "NEXTVAL"}

// rest reads up to the end, or to the comma after an action. It finds names of other tables
// and of constraints, and the table's own before a dot.
func (r *reader) rest(table string, action bool) error {
	for depth := 0; !r.done(); {
		t := r.tokens[r.at]
		switch {
		case r.is("("):
			depth++
		case r.is(")"):
			depth--
		case r.is(",") && depth == 0 && action:
			r.at++
			return nil
		case slices.ContainsFunc(foreign, func(w string) bool { return r.is(w) }) && !r.dot(-1) && !r.dot(1):
			return fmt.Errorf("%s is not allowed", strings.ToUpper(t.Text(r.sql)))
		case r.is("PARTITION", "OF"), depth == 0 && !action && r.is("AS"):
			return fmt.Errorf("%s is not allowed", strings.ToUpper(t.Text(r.sql)))
		case r.skip("REFERENCES"), r.likeTable():
			if _, err := r.table(); err != nil {
				return err
			}
			continue
		case r.skip("CONSTRAINT"):
			if err := r.constraint(table); err != nil {
				return err
			}
			continue
		case r.is("USING", "INDEX") && !r.is("USING", "INDEX", "TABLESPACE"):
			r.at += 2
			if _, err := r.owned(indexName, table); err != nil {
				return err
			}
			continue
		case (t.Kind == sqltext.Word || t.Kind == sqltext.QuotedIdent) && r.dot(1) && !r.dot(-1):
			if err := r.qualifier(table); err != nil {
				return err
			}
		}
		r.at++
	}
	return nil
}

// likeTable skips the LIKE of "CREATE TABLE a LIKE b" and "(LIKE b …)"; no expression can
// have it there.
func (r *reader) likeTable() bool {
	if r.is("LIKE") && r.at > 0 && (r.at == 3 || r.at == 6 || r.tokens[r.at-1].Is(r.sql, "(")) {
		r.at++
		return true
	}
	return false
}

// dot reports whether the token at this distance is a dot.
func (r *reader) dot(away int) bool {
	at := r.at + away
	return at >= 0 && at < len(r.tokens) && r.tokens[at].Is(r.sql, ".")
}

// qualifier reads the name before a dot: the statement's own table, or the schema of a
// function or a collation.
func (r *reader) qualifier(table string) error {
	t := r.tokens[r.at]
	if text := sqltext.Ident(r.sql, t); fold(text) == fold(table) {
		r.out.names = append(r.out.names, name{Token: t, kind: tableName, text: text})
		return nil
	}
	if fold(sqltext.Ident(r.sql, t)) == "pg_catalog" {
		return nil
	}
	return fmt.Errorf("%s is neither %s nor pg_catalog", t.Text(r.sql), table)
}

// constraint reads the text after the word CONSTRAINT.
func (r *reader) constraint(table string) error {
	adding := r.at < 2 || !r.tokens[r.at-2].Is(r.sql, "DROP")
	r.skip("IF", "EXISTS")
	r.skip("IF", "NOT", "EXISTS")
	if slices.ContainsFunc([]string{"UNIQUE", "PRIMARY", "FOREIGN", "CHECK"}, func(w string) bool { return r.is(w) }) {
		return nil // it has no name
	}
	text, t, err := r.ident()
	if err != nil || r.dialect == "sqlite" {
		return err
	}
	own := r.dialect == "postgres" || r.is("FOREIGN") || r.is("CHECK") || r.is("REFERENCES")
	if adding {
		r.known.constraint(table, text, own)
	} else if r.dialect == "mysql" {
		r.out.names = append(r.out.names, name{Token: t, kind: constraintName, text: text, table: table})
		return nil // settle finds out later whether the name ends with the physical table's
	}
	if own {
		r.out.names = append(r.out.names, name{Token: t, kind: constraintName, text: text, table: table})
	}
	return nil
}
