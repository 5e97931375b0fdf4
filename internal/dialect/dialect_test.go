package dialect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestQuoteDoublesItsQuoteCharacter(t *testing.T) {
	if got := (MySQL{}).Quote("a`b\"c"); got != "`a``b\"c`" {
		t.Errorf("MySQL: %s", got)
	}
	if got := (SQLite{}).Quote("a`b\"c"); got != `"a`+"`"+`b""c"` {
		t.Errorf("SQLite: %s", got)
	}
	if got := (Postgres{}).Quote("a`b\"c"); got != `"a`+"`"+`b""c"` {
		t.Errorf("PostgreSQL: %s", got)
	}
}

func TestOnlyPostgreSQLNumbersItsPlaceholders(t *testing.T) {
	for d, want := range map[Dialect]string{MySQL{}: "? ?", SQLite{}: "? ?", Postgres{}: "$1 $12"} {
		if got := d.Placeholder(1) + " " + d.Placeholder(12); got != want {
			t.Errorf("%s: %s", d.Name(), got)
		}
	}
}

func TestTheVersionTellsServersApart(t *testing.T) {
	for version, want := range map[string]Server{
		"8.0.36":          {MySQL{}, "8.0.36"},
		"10.11.6-MariaDB": {MySQL{}, "10.11.6-MariaDB"},
		"PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc": {Postgres{}, "15.18 (Debian 15.18-0+deb12u1)"},
		"PostgreSQL 17.2 on aarch64": {Postgres{}, "17.2"},
	} {
		if got, err := byVersion(version); err != nil || got != want {
			t.Errorf("%s: %v, %v", version, got, err)
		}
	}
	for _, version := range []string{"", "CockroachDB CCL v23.1.11"} {
		if got, err := byVersion(version); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v, %v", version, got, err)
		}
	}
}

func TestNamedKnowsAliasesAndNamesTheUnknown(t *testing.T) {
	for name, want := range map[string]string{"MySQL": "mysql", "mariadb": "mysql", "sqlite": "sqlite", "sqlite3": "sqlite", "postgres": "postgres", "PostgreSQL": "postgres"} {
		if d, err := Named(name); err != nil || d.Name() != want {
			t.Errorf("Named(%q) = %v, %v", name, d, err)
		}
	}
	if _, err := Named("oracle"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("Named(oracle): %v", err)
	}
}

func TestCheckIdentTakesPlainNamesOnly(t *testing.T) {
	for _, name := range []string{"a", "_", "order_items$2", strings.Repeat("x", 64)} {
		if err := CheckIdent(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "1a", "a b", "a;b", "a`", "ä", "a.b", strings.Repeat("x", 65), "a\n"} {
		if err := CheckIdent(name); !errors.Is(err, ErrIdentifier) {
			t.Errorf("CheckIdent(%q): %v", name, err)
		}
	}
}

func TestContendedIsWhatAnotherTryCanCure(t *testing.T) {
	for text, want := range map[string]bool{
		"database is locked (5) (SQLITE_BUSY)":                                             true,
		"database table is locked: t (262)":                                                true,
		"Error 1213 (40001): Deadlock found when trying to get lock":                       true,
		"ERROR: deadlock detected (SQLSTATE 40P01)":                                        true,
		"FEHLER: Verklemmung entdeckt (SQLSTATE 40P01)":                                    true,
		"pq: deadlock detected":                                                            true,
		"ERROR: could not serialize access due to concurrent update (SQLSTATE 40001)":      true,
		"pq: could not serialize access due to read/write dependencies among transactions": true,
		"ERROR: canceling statement due to lock timeout (SQLSTATE 55P03)":                  false,
		"Error 1205 (HY000): Lock wait timeout exceeded":                                   false,
		"Error 1146 (42S02): Table 'a.b' doesn't exist":                                    false,
	} {
		if got := Contended(fmt.Errorf("seed: %w", errors.New(text))); got != want {
			t.Errorf("Contended(%s) = %v", text, got)
		}
	}
	if Contended(nil) {
		t.Error("no error is no contention")
	}
}
