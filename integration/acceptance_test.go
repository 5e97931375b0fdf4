package integration_test

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/corpus"
)

// Statements that MySQL or MariaDB refuse would prove nothing about the engine, which
// plans them as they stand.
func TestTheAcceptanceCorpusIsSQLForMySQLAndMariaDB(t *testing.T) {
	files, err := corpus.ReadDir("../sharding/internal/plan/testdata/acceptance")
	if err != nil {
		t.Fatal(err)
	}
	maria, my := server.ShareMariaDB(t), server.ShareMySQL(t)
	for _, f := range files {
		t.Run("MariaDB/"+f.Name, func(t *testing.T) { tryAll(t, maria.Open(t, f.Name), f) })
		t.Run("MySQL/"+f.Name, func(t *testing.T) { tryAll(t, my.Open(t, f.Name), f) })
	}
}

func tryAll(t *testing.T, db *sql.DB, f corpus.File) {
	t.Helper()
	if err := f.CreateTables(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, s := range f.Statements {
		if !s.For(corpus.MySQL) {
			continue
		}
		tried++
		if err := s.Try(t.Context(), db); err != nil {
			t.Errorf("%s.sql:%d: %s: %v", f.Name, s.Line, s.Name, err)
		}
	}
	t.Logf("%d of %d statements", tried, len(f.Statements))
}
