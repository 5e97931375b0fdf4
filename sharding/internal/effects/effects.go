// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
)

// decisive matches names of settings that decide how a database parses SQL, how it sorts texts, how many digits
// its numbers have, and how many rows it returns, unless the value is one with which none is left out.
var decisive = regexp.MustCompile(`(?i)\b(sql_mode|standard_conforming_strings|max_sort_length|div_precision_increment)\b` +
	`|\bsql_select_limit\s*:?=\s*[^d\s]|\bextra_float_digits["']?\s*(=|to\b|,)\s*["']?[^1-9"'\s]`)

func decides(text string) bool { return decisive.MatchString(text) }

// aboutLast matches functions, variables and statements that return something about an earlier statement of their
// connection.
var aboutLast = regexp.MustCompile(`(?i)\b(found_rows|row_count|last_insert_id|changes|last_insert_rowid|lastval)\s*\(\s*\)` +
	`|@@((session|local)\.)?(warning_count|error_count|last_insert_id|identity)\b` +
	`|\bshow\s+(count\s*\(\s*\*\s*\)\s+)?(warnings|errors)\b|\bget\s+(current\s+)?diagnostics\b`)

// Change is what a statement changes in its session.
type Change uint8

// The changes.
const (
	Nothing Change = iota
	Settings
	Variables // of the user
	Begins    // a transaction, by its text
	Ends      // a transaction
)

// Effects are what a text does to its session, and what it asks about earlier statements of it.
type Effects struct {
	Change  Change
	Local   bool     // what it changes ends with the transaction
	Decides bool     // it changes how the database parses SQL, or which rows and digits it returns
	Assigns bool     // it may set user variables, on a shard too
	Ends    bool     // it ends the transaction in which it is executed
	About   []string // the functions, variables and statements in it that return something about an earlier statement
}

// none are the effects of nearly all statements.
var none = &Effects{}

// Of returns the effects of a text, which a caller must not change. A stateless text only reads or writes rows. A
// regular expression takes much longer for a long text than the search for a word, so these come first.
func Of(text string, d sqlparse.Dialect, stateless bool) *Effects {
	var e Effects
	if !stateless {
		e.Change, e.Local = changed(text, d)
		e.Decides = (e.Change == Settings || e.Change == Begins) && decides(text)
		e.Assigns = e.Change == Variables && strings.Contains(text, ":=")
		e.Ends = e.Change == Ends || isMySQL(d) && (e.Change == Begins || commitsImplicitly(text, d.Rules()))
	}
	if sqltext.Mentions(text, "found_rows", "_count", "last_insert", "changes", "lastval", "identity", "warnings", "errors", "diagnostics") {
		e.About = aboutLast.FindAllString(text, -1)
	}
	if e.Change == Nothing && e.About == nil && !e.Ends {
		return none
	}
	return &e
}

func isMySQL(d sqlparse.Dialect) bool {
	return d.Family == sqlparse.MySQL || d.Family == sqlparse.MariaDB
}

// implicit are the first words of statements before which MySQL and MariaDB commit the transaction.
var implicit = map[string]bool{
	"alter": true, "create": true, "drop": true, "rename": true, "truncate": true, "grant": true, "revoke": true, "lock": true, "analyze": true,
	"optimize": true, "repair": true, "check": true, "flush": true, "install": true, "uninstall": true, "cache": true,
}

// commitsImplicitly reports whether MySQL and MariaDB commit the transaction before a statement. ANALYZE of MariaDB before a
// query does not, and tables of the session do not matter.
func commitsImplicitly(text string, f sqltext.Flavor) bool {
	scan := sqltext.NewScanner(text, f)
	first, ok := scan.NextCode()
	if !ok || !implicit[strings.ToLower(first.Text(text))] {
		return false
	}
	next, ok := scan.NextCode()
	if ok && next.Is(text, "or") { // CREATE OR REPLACE
		_, _ = scan.NextCode()
		next, ok = scan.NextCode()
	}
	if first.Is(text, "analyze") {
		return ok && (next.Is(text, "table") || next.Is(text, "local") || next.Is(text, "no_write_to_binlog"))
	}
	return ok && !next.Is(text, "temporary")
}

var toSavepoint = regexp.MustCompile(`(?i)\brollback\s+((work|transaction)\s+)?to\b`)

var setsConfig = regexp.MustCompile(`(?i)\bset_config\s*\(`)

// setsPragma matches settings of a connection to SQLite that change what later statements do.
var setsPragma = regexp.MustCompile(`(?i)^pragma\s+(\w+\.)?(case_sensitive_like|query_only|(defer_)?foreign_keys|ignore_check_constraints|recursive_triggers|reverse_unordered_selects|writable_schema)\s*[=(]`)

// changed returns what a statement at home changes, and whether that ends with the transaction. SET
// GLOBAL and similar statements change no session.
func changed(query string, d sqlparse.Dialect) (of Change, local bool) {
	postgres, sqlite := d.Family == sqlparse.PostgreSQL, d.Family == sqlparse.SQLite
	scan := sqltext.NewScanner(query, d.Rules())
	switch word, _ := scan.NextCode(); {
	case word.Is(query, "begin"), word.Is(query, "start"):
		return Begins, false
	case word.Is(query, "commit"), word.Is(query, "rollback") && !toSavepoint.MatchString(query), word.Is(query, "end"), word.Is(query, "abort") && postgres:
		return Ends, false
	case word.Is(query, "prepare") && postgres:
		if next, _ := scan.NextCode(); next.Is(query, "transaction") {
			return Ends, false
		}
		return Nothing, false
	case sqlite && word.Is(query, "savepoint"):
		return Begins, false
	case sqlite && word.Is(query, "release"):
		return Ends, false
	case sqlite && word.Is(query, "pragma") && setsPragma.MatchString(query[word.Start:]):
		return Settings, false
	case word.Is(query, "reset") && postgres, postgres && sqltext.Mentions(query, "set_config") && setsConfig.MatchString(query):
		return Settings, false
	case !word.Is(query, "set"):
		if isMySQL(d) && NamesVariable(query, d) { // SELECT … INTO @x, SELECT @x := 3
			return Variables, false
		}
		return Nothing, false
	}
	depth, first := 0, true
	for {
		t, ok := scan.NextCode()
		switch {
		case !ok:
			return of, local
		case first:
			kind, ending := assigned(strings.ToLower(t.Text(query)), strings.ToLower(query[t.Start:]), postgres)
			if kind == Settings || of == Nothing {
				of, local = kind, ending
			}
		case t.Is(query, "("):
			depth++
		case t.Is(query, ")"):
			depth--
		}
		first = depth == 0 && t.Is(query, ",")
	}
}

// assigned returns what an assignment of SET changes that begins with a word, by the word and the
// text from there on.
func assigned(word, rest string, postgres bool) (of Change, local bool) {
	switch {
	case strings.HasPrefix(rest, "@@global"), strings.HasPrefix(rest, "@@persist"):
		return Nothing, false
	case strings.HasPrefix(rest, "@") && !strings.HasPrefix(rest, "@@"):
		return Variables, false
	}
	switch word {
	case "global", "persist", "persist_only", "password", "resource":
		return Nothing, false
	case "transaction", "constraints":
		return Settings, true
	case "local":
		return Settings, postgres
	}
	return Settings, false
}

// NamesVariable reports whether a text has a user variable of MySQL or MariaDB in it.
func NamesVariable(query string, d sqlparse.Dialect) bool {
	if !strings.Contains(query, "@") {
		return false
	}
	scan := sqltext.NewScanner(query, d.Rules())
	for {
		t, ok := scan.NextCode()
		switch {
		case !ok:
			return false
		case t.Kind != sqltext.String && strings.HasPrefix(query[t.Start:], "@") && !strings.HasPrefix(query[t.Start:], "@@"):
			return true
		}
	}
}
