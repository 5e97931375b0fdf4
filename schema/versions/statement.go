// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqltext"
)

// statement is a DDL statement and the names in it that differ between shards.
type statement struct {
	sql    string
	tables []string // tables that it names, once each; its own come first
	own    int      // how many of tables it defines; the others are only referred to
	names  []name
	drops  string // the index of a DROP INDEX that names no table

	dropsTables bool
}

// name is a token that is replaced.
type name struct {
	sqltext.Token

	kind  nameKind
	text  string // the logical name
	table string // the table of the index or constraint
}

type nameKind string

const (
	tableName      nameKind = "table"
	indexName      nameKind = "index"
	constraintName nameKind = "constraint"
)

// on returns the statement for physical tables, given by their logical names in lower case.
func (s *statement) on(d dialect.Dialect, physical map[string]string) (string, error) {
	var b strings.Builder
	at := 0
	for _, n := range s.names {
		text := physical[fold(n.text)]
		if n.kind != tableName {
			var err error
			if text, err = ownName(d, n.text, n.table, physical[fold(n.table)]); err != nil {
				return "", err
			}
		}
		b.WriteString(s.sql[at:n.Start] + s.apart(n.Start-1) + d.Quote(text) + s.apart(n.End))
		at = n.End
	}
	return b.String() + s.sql[at:], nil
}

// apart returns a space where a quoted name would follow or precede another quote, with
// which it would form another token.
func (s *statement) apart(neighbour int) string {
	if neighbour >= 0 && neighbour < len(s.sql) && strings.IndexByte("\"`'", s.sql[neighbour]) >= 0 {
		return " "
	}
	return ""
}

// ownName is the name of an index or constraint of a physical table.
func ownName(d dialect.Dialect, text, logical, physical string) (string, error) {
	if physical == logical {
		return text, nil
	}
	text += "_" + physical
	if limit := longest(d); len(text) > limit {
		return "", fmt.Errorf("%w: the name %s is longer than %d bytes, the limit of the database; use a shorter one", ErrStatement, text, limit)
	}
	return text, nil
}

// longest is the largest length of a name in bytes.
func longest(d dialect.Dialect) int {
	switch d.Name() {
	case "postgres":
		return 63
	case "mysql":
		return 64
	}
	return 1 << 10
}

// fold returns the form in which names of tables are compared.
func fold(name string) string { return strings.ToLower(name) }

// add records a table that the statement names.
func (s *statement) add(table string) {
	if !slices.ContainsFunc(s.tables, func(t string) bool { return fold(t) == fold(table) }) {
		s.tables = append(s.tables, table)
	}
}
