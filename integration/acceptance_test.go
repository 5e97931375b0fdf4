// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/corpus"
	"github.com/shardid/shardid/internal/testkit/testshards"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// A statement that MySQL or MariaDB refuses would be no evidence for the engine, which
// plans it without running it.
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

// On PostgreSQL the statements of applications go to the expected shards. Texts with another collation
// than C are sorted and grouped over shards only if the query has COLLATE "C".
func TestStatementsOfTheCorpusGoWhereTheyAreExpectedToOnPostgreSQL(t *testing.T) {
	files, err := corpus.ReadDir("../sharding/internal/plan/testdata/acceptance")
	if err != nil {
		t.Fatal(err)
	}
	p := server.SharePostgres(t)
	for name, c := range map[string]struct {
		open func(tb testing.TB, database string) *sql.DB
		want int // of a hundred
	}{
		"C": {p.Open, 95},
		"en_ICU": {func(tb testing.TB, database string) *sql.DB {
			tb.Helper()
			return p.OpenICU(tb, "en_"+database, "en-US")
		}, 95},
	} {
		t.Run(name, func(t *testing.T) {
			taken, expected := 0, 0
			for _, f := range files {
				f = f.ForPostgreSQL()
				whole := c.open(t, "whole_"+f.Name)
				if err := f.CreateTables(t.Context(), whole); err != nil {
					t.Fatal(err)
				}
				routed := corpusOn(t, f, sharding.DBs{"db0": c.open(t, f.Name+"_0"), "db1": c.open(t, f.Name+"_1")})
				some, right := goAsExpected(t, f, whole, routed)
				taken, expected = taken+some, expected+right
			}
			t.Logf("%d of %d statements that PostgreSQL takes go where they are expected to", expected, taken)
			if taken < 250 || expected*100 < taken*c.want {
				t.Error("too few")
			}
		})
	}
}

// goAsExpected counts the statements of a file that PostgreSQL accepts, and those of them that
// go to the expected shards.
func goAsExpected(t *testing.T, f corpus.File, whole, routed *sql.DB) (taken, expected int) {
	t.Helper()
	for _, s := range f.Statements {
		if err := s.Try(t.Context(), whole); err != nil {
			t.Logf("%s.sql:%d is not PostgreSQL's: %v", f.Name, s.Line, err)
			continue
		}
		taken++
		e, err := shardsql.Explain(t.Context(), routed, s.Text, s.Args...)
		switch got := outcomeOf(e); {
		case err != nil:
			t.Errorf("%s.sql:%d: %v", f.Name, s.Line, err)
		case got == s.With, got == corpus.AtHome && s.With == corpus.Everywhere:
			expected++
		default:
			t.Logf("%s.sql:%d: %s: %s, and not %s: %v", f.Name, s.Line, s.Text, got, s.With, e.Err)
		}
	}
	return taken, expected
}

// corpusOn makes the tables of a file, whose ids carry the slot, and routes to them.
func corpusOn(t *testing.T, f corpus.File, dbs sharding.DBs) *sql.DB {
	t.Helper()
	router := testshards.RouterOf(t, f, dbs, true)
	for _, table := range f.Tables {
		for name, db := range dbs {
			if table.Placement == corpus.Broadcast || table.Placement == corpus.Home && name == "db0" {
				database.Exec(t, db, table.Create)
			}
		}
		if known, ok := router.Table(table.Name); ok {
			for _, at := range known.Map.Targets() {
				database.Exec(t, dbs[at.DB], strings.Replace(table.Create, "CREATE TABLE "+table.Name+" ", "CREATE TABLE "+at.Table+" ", 1))
			}
		}
	}
	routed := shardsql.OpenDB(shardsql.Config{Router: router, Home: dbs["db0"]})
	t.Cleanup(func() { _ = routed.Close() })
	return routed
}

func outcomeOf(e shardsql.Explanation) corpus.Outcome {
	switch {
	case e.Kind == shardsql.Refused:
		return corpus.Refused
	case len(e.Lookups) > 0, e.Kind == shardsql.Scatter, e.Kind == shardsql.Several:
		return corpus.Scatter
	case e.Kind == shardsql.One:
		return corpus.One
	case e.Kind == shardsql.Copies:
		return corpus.Everywhere
	}
	return corpus.AtHome
}
