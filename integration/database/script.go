package database

import (
	"database/sql"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Chinook is a published sample database with AUTO_INCREMENT keys, as the tests of the
// folders of integration find it. Where it lies beside the checkout it is used. Its
// script creates and uses a database of its own.
const Chinook = "../../../shared/data/chinook/Chinook_MySql_AutoIncrementPKs.sql"

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
