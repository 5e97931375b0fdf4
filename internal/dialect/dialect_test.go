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
}

func TestNamedKnowsAliasesAndNamesTheUnknown(t *testing.T) {
	for name, want := range map[string]string{"MySQL": "mysql", "mariadb": "mysql", "sqlite": "sqlite", "sqlite3": "sqlite"} {
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
		"database is locked (5) (SQLITE_BUSY)":                       true,
		"database table is locked: t (262)":                          true,
		"Error 1213 (40001): Deadlock found when trying to get lock": true,
		"Error 1205 (HY000): Lock wait timeout exceeded":             false,
		"Error 1146 (42S02): Table 'a.b' doesn't exist":              false,
	} {
		if got := Contended(fmt.Errorf("seed: %w", errors.New(text))); got != want {
			t.Errorf("Contended(%s) = %v", text, got)
		}
	}
	if Contended(nil) {
		t.Error("no error is no contention")
	}
}
