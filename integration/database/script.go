// SPDX-License-Identifier: Apache-2.0

package database

import (
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Chinook is the path of the script of a published sample database with AUTO_INCREMENT keys, relative to the
// folders of integration. Tests use it if it is beside the checkout. The
// script creates and uses a database of its own.
const Chinook = "../../../shared/data/chinook/Chinook_MySql_AutoIncrementPKs.sql"

// ChinookPostgres is the same for PostgreSQL, with SERIAL keys. Its script makes psql create a database
// and connect to it.
const ChinookPostgres = "../../../shared/data/chinook/Chinook_PostgreSql_SerialPKs.sql"

// RunPostgresScript runs the statements of a psql script after the line that connects to
// its database.
func RunPostgresScript(t *testing.T, db *sql.DB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, statements, connects := strings.Cut(string(text), "\n\\c ")
	_, statements, ends := strings.Cut(statements, "\n")
	if !connects || !ends {
		t.Fatalf("%s does not connect to a database", file)
	}
	Exec(t, db, statements)
}

// RunScript runs the statements of a file on MariaDB or MySQL.
func RunScript(t *testing.T, dsn, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MultiStatements = true
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	Exec(t, db, string(text))
}
