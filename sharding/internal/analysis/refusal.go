// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// Refusal returns an error that names the refused operation and says what to do instead. The operation is a query
// if the statement writes only other tables.
func (r *Reading) Refusal(table string, err error, hint string) *sharding.RouteError {
	op := operation(r.Statement)
	if r.onlyReads(table) {
		op = operations[sqlparse.Select]
	}
	return &sharding.RouteError{Op: op, Table: table, Err: err, Hint: hint}
}

// onlyReads reports whether a statement reads a table, and writes only others.
func (r *Reading) onlyReads(table string) (reads bool) {
	for _, of := range r.Refs {
		if strings.EqualFold(of.Label(), table) {
			if of.Written {
				return false
			}
			reads = true
		}
	}
	return reads && slices.ContainsFunc(r.Refs, func(of *Reference) bool { return of.Written })
}

var operations = map[sqlparse.Verb]string{
	sqlparse.Select: "query", sqlparse.Insert: "insert", sqlparse.Replace: "insert", sqlparse.Update: "update", sqlparse.Delete: "delete",
}

// operation returns the operation of a statement, for messages: "query", "DROP of".
func operation(st *sqlparse.Statement) string {
	if name := operations[st.Verb]; name != "" {
		return name
	}
	if word := Definition(st); word != "" {
		return word + " of"
	}
	return "statement"
}

// Definition returns the first word of a statement that creates, changes or empties tables, "" for
// any other statement.
func Definition(st *sqlparse.Statement) string {
	switch word := strings.ToUpper(firstWord(st)); word {
	case "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE":
		return word
	}
	return ""
}

// firstWord returns the first word of a statement as it is written.
func firstWord(st *sqlparse.Statement) string {
	s := sqltext.NewScanner(st.Text, 0)
	t, ok := s.Next()
	for ok && t.Kind != sqltext.Word {
		t, ok = s.Next()
	}
	return t.Text(st.Text)
}

// RecordRefusal records the first reason why no plan can be made.
func (r *Reading) RecordRefusal(table string, err error, hint string) {
	if r.Refused == nil {
		r.Refused = r.Refusal(table, err, hint)
	}
}

// complete refuses a statement that names a table of the router without a reference to it, because
// such a table cannot be routed.
func (r *Reading) complete() {
	for _, name := range r.Statement.Names {
		inCTE := func(w *sqlparse.Statement) bool { return slices.Contains(w.Names, name) }
		if r.routed(name) && !slices.Contains(r.CTEs, name) && !r.RefersTo(name) && !slices.ContainsFunc(r.Statement.Writes, inCTE) {
			r.RecordRefusal(name, sharding.ErrRawTable, "it is named in a place that cannot be routed; rewrite the statement")
		}
	}
}

// RefersTo reports whether a reference is to a table of this name.
func (r *Reading) RefersTo(name string) bool {
	return slices.ContainsFunc(r.Refs, func(ref *Reference) bool { return strings.EqualFold(ref.Label(), name) })
}

// routed reports whether the router knows a table of this name.
func (r *Reading) routed(name string) bool {
	_, ok := r.Snapshot.Lookup(name)
	return ok || r.Snapshot.IsBroadcast(name)
}

// FirstSharded returns the name of the first sharded table, for messages.
func (r *Reading) FirstSharded() string {
	for _, ref := range r.Refs {
		if ref.Role == Sharded {
			return ref.Table.Name
		}
	}
	return ""
}

// unread refuses a statement that was not parsed if it names a table of the router.
func (r *Reading) unread(hint string) {
	st, err := r.Statement, sharding.ErrRawTable
	if Definition(st) != "" {
		err = fmt.Errorf("%w: DDL of sharded and broadcast tables is not routed", err)
	}
	for _, name := range st.Names {
		if t, ok := r.Snapshot.Lookup(name); ok {
			r.RecordRefusal(t.Name, err, hint)
		} else if r.Snapshot.IsBroadcast(name) {
			r.RecordRefusal(name, err, copiesHint(st, hint))
		}
	}
}

// unreadHint says what to do instead of a statement that was not parsed.
func unreadHint(st *sqlparse.Statement) string {
	switch Definition(st) {
	case "":
		return unknownHint(st)
	case "TRUNCATE":
		return "empty its tables with DELETE and sharding.AllShards, or run the statement for each of Router.Targets on Router.DB"
	}
	return "create and change its tables on every target with shardid ddl or gormplugin.Migrate, in place of GORM's AutoMigrate, which also creates the tables of relations; or run the statement for each of Router.Targets on Router.DB"
}

// copiesHint says what to do instead of such a statement about a broadcast table. hint is that for a sharded one.
func copiesHint(st *sqlparse.Statement, hint string) string {
	const everywhere = "on Router.DB for each of Router.Databases, and on the home database"
	if Definition(st) != "" {
		return "create and change it in every database that has a copy: shardid ddl and gormplugin.Migrate do that; or run the statement " + everywhere
	}
	if word := unreadWord(st); word != "" && !st.HasMore {
		return word + " is not routed; run it " + everywhere
	}
	return hint
}

// unknownHint says what to do instead of a statement that is no DDL and was not parsed.
func unknownHint(st *sqlparse.Statement) string {
	switch word := unreadWord(st); {
	case st.HasMore:
		return "its text has several statements; send each by itself"
	case word == "COPY", word == "LOAD": // each shard has its own rows
		return word + " is not routed; send the rows of each shard to its physical table on Router.DB, grouped by Router.Target (docs/other-libraries.md has an example for pgx), or INSERT them in batches"
	case word == "MERGE":
		return word + " is not routed; write INSERT with ON CONFLICT, or UPDATE and INSERT"
	case word != "":
		return word + " is not routed; run it for each of Router.Targets, with the physical name, on Router.DB"
	}
	return "it cannot be parsed " + st.Why + "; rewrite it, or send it with physical names to Router.DB"
}

// unreadWord returns the first word of a statement that was not parsed because of this word, in capitals, otherwise "".
func unreadWord(st *sqlparse.Statement) string {
	first := firstWord(st)
	word := strings.ToUpper(first)
	if st.Why == "near "+strconv.Quote(first) || word == "DESCRIBE" || word == "DESC" { // of a table, or of a statement that was not parsed
		return word
	}
	return ""
}
