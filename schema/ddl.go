// SPDX-License-Identifier: Apache-2.0

package schema

import (
	_ "embed"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

var (
	//go:embed ddl/mysql.sql
	mysqlDDL string
	//go:embed ddl/postgres.sql
	postgresDDL string
	//go:embed ddl/sqlite.sql
	sqliteDDL string
)

// DDL returns the SQL that creates shardid's own tables, those that Apply
// creates, as a DBA would run it: with comments, and safe to run again.
// The name is "mysql", "postgres" or "sqlite"; "mariadb" means "mysql". For
// another name the error says which there are.
func DDL(name string) (string, error) {
	d, err := dialect.Named(name)
	if err != nil {
		return "", err
	}
	return ddl(d), nil
}

func ddl(d dialect.Dialect) string {
	switch d.Name() {
	case "sqlite":
		return sqliteDDL
	case "postgres":
		return postgresDDL
	}
	return mysqlDDL
}

// statements splits shardid's own DDL, in which a line ends with a semicolon only where a
// statement ends.
func statements(text string) []string {
	var all []string
	for s := range strings.SplitSeq(text, ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}
