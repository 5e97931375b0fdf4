// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// history is what earlier statements of a session have left on its inner connections. Other
// connections do not have it: a statement that depends on it and goes there is refused.
type history struct {
	set changedSetting
	// variables is the connection on which a user variable was set, nil before any, and released if the session
	// does not hold it.
	variables *sql.Conn
	// last is where the last statement was executed; query, write and insert are where the last one of
	// its kind was.
	last, query, write, insert origin
}

// changedSetting is what SET, BEGIN or a similar text has changed in a session.
type changedSetting struct {
	on           *sql.Conn // nil before any
	text         string
	local, begin bool   // it ends with the transaction; it begins one
	parsing      string // the text that changed how the database parses SQL, or ""
}

// parsesOtherwise matches names of settings that decide how a database parses SQL.
var parsesOtherwise = regexp.MustCompile(`(?i)\b(sql_mode|standard_conforming_strings)\b`)

// released stands for a connection that a session does not hold any more.
var released = new(sql.Conn)

// origin is the connection of an earlier statement of a session.
type origin struct {
	conn      *sql.Conn // nil before any, and if the session does not hold it
	elsewhere bool      // there was one, and the session does not hold its connection
}

// aboutLast matches functions, variables and statements that return something about an earlier statement of their
// connection.
var aboutLast = regexp.MustCompile(`(?i)\b(found_rows|row_count|last_insert_id|changes|last_insert_rowid|lastval)\s*\(\s*\)` +
	`|@@((session|local)\.)?(warning_count|error_count|last_insert_id|identity)\b` +
	`|\bshow\s+(count\s*\(\s*\*\s*\)\s+)?(warnings|errors)\b|\bget\s+(current\s+)?diagnostics\b`)

// about returns the statement that a match of aboutLast is about.
func (h *history) about(what string) origin {
	what = strings.ToLower(what)
	name, _, _ := strings.Cut(what, "(")
	switch name = strings.TrimSpace(name); {
	case name == "found_rows":
		return h.query
	case name == "changes":
		return h.write
	case name == "row_count", strings.HasPrefix(what, "show"), strings.HasPrefix(what, "get"), strings.HasSuffix(what, "_count"):
		return h.last
	}
	return h.insert
}

// fail records where a statement failed that was sent.
func (h *history) fail(s *session, to *plan.Route, err error) {
	if in, holds := onlyHeld(s, to); !isRefusal(err) {
		h.last = origin{conn: in.conn, elsewhere: !holds}
	}
}

// note records where a statement was executed.
func (h *history) note(p *plan.Plan, at origin) {
	h.last = at
	switch plan.Verb(p) {
	case sqlparse.Select:
		h.query = at
	case sqlparse.Insert, sqlparse.Replace:
		h.write, h.insert = at, at
		return
	case sqlparse.Update, sqlparse.Delete:
		h.write = at
	}
	if plan.SetsLastID(p) {
		h.insert = at
	}
}

// isAll reports whether all earlier statements were executed on a connection.
func (h *history) isAll(on *sql.Conn) bool {
	for _, at := range []origin{h.last, h.query, h.write, h.insert} {
		if !at.isOn(on) {
			return false
		}
	}
	return true
}

// isOn reports whether the statement was executed on a connection, or none was executed.
func (o origin) isOn(conn *sql.Conn) bool { return !o.elsewhere && (o.conn == nil || o.conn == conn) }

// admit refuses a statement that the session must not send, and returns the route of the others. It chooses the
// database of a statement that any of them can execute.
func (h *history) admit(s *session, to *plan.Route, query string, e *effects) (*plan.Route, error) {
	if err := admitEnd(s.tx, e, query); err != nil {
		return nil, err
	}
	if to.Anywhere && s.tx.began() {
		there := *to
		there.Target.DB = s.tx.begunOn()
		to = &there
	}
	if h.set.on == nil && h.variables == nil && h.last == (origin{}) {
		return to, nil
	}
	return to, h.depends(s, to, query, e)
}

// elsewhere is the hint for a statement after a SET on another connection.
const elsewhere = "give the setting in the data source names of all databases, or send the statement on another connection than the SET"

// depends returns the refusal of a statement that depends on an earlier one of the session and would be sent on
// another connection.
func (h *history) depends(s *session, to *plan.Route, query string, e *effects) error {
	for _, pool := range s.database.pools(to) {
		var on *sql.Conn
		if in, ok := s.held(s.tx, pool); ok {
			on = in.conn
		}
		switch {
		case h.set.on != nil && on != h.set.on:
			hint := elsewhere
			if h.set.begin {
				hint = "begin transactions with BeginTx, so that their statements go to their shards"
			}
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s holds on one connection, and this statement is for %s, on another one", sharding.ErrSettings, h.set.text, s.database.nameOf(pool)), Hint: hint}
		case h.set.parsing != "" && to.Kind != plan.Home:
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: after %s, the database may parse this statement otherwise than its route was found", sharding.ErrSettings, h.set.parsing),
				Hint: elsewhere}
		case h.variables != nil && on != h.variables && variable(query, s.database.server.reads.Flavor):
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: its variable was set on one connection, and this statement is for %s, on another one", sharding.ErrSettings, s.database.nameOf(pool)),
				Hint: "give the value as an argument"}
		}
		if h.isAll(on) {
			continue
		}
		for _, f := range e.about {
			if !h.about(f).isOn(on) {
				return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s is about an earlier statement of a connection, and that went over another one", sharding.ErrSettings, f),
					Hint: "use the result of the earlier statement: its RowsAffected and LastInsertId, or COUNT(*) with its conditions"}
			}
		}
	}
	return nil
}

// remember records what an executed statement of the session has left on its connection.
func (h *history) remember(s *session, p *plan.Plan, to *plan.Route, query string, e *effects) {
	in, holds := onlyHeld(s, to)
	h.note(p, origin{conn: in.conn, elsewhere: !holds})
	if to.Kind != plan.Home && e.assigns {
		if h.variables = in.conn; !holds {
			h.variables = released
		}
	}
	if !holds || to.Kind != plan.Home {
		return
	}
	switch e.change {
	case settings, begins: // what lasts longer is kept
		parsing := h.set.parsing
		if e.parsing {
			parsing = strings.TrimSpace(query)
		}
		if lasts := e.change == settings && !e.local; h.set.on == nil || lasts {
			h.set = changedSetting{on: in.conn, text: strings.TrimSpace(query), local: e.local, begin: e.change == begins}
		}
		h.set.parsing = parsing
	case ends:
		if h.set.begin && h.isEndedBy(query) {
			h.set = changedSetting{}
		}
	case variables:
		h.variables = in.conn
	}
}

// isEndedBy reports whether a text ends the transaction that h.set began. On SQLite a SAVEPOINT begins one, which
// its RELEASE ends.
func (h *history) isEndedBy(query string) bool {
	verb, name := savepointOf(query)
	first, begun := savepointOf(h.set.text)
	return verb != release || first == set && begun == name
}

// onlyHeld returns the connection that a session holds to the only database of a route.
func onlyHeld(s *session, to *plan.Route) (in inner, ok bool) {
	if s.tx == nil && s.home.conn == nil {
		return inner{}, false
	}
	pool := s.database.only(to)
	if pool == nil {
		return inner{}, false
	}
	if in, ok = s.held(s.tx, pool); !ok {
		return inner{}, false
	}
	return in, true
}

// endTransaction forgets what ends with a transaction: what was left on its connections, of which
// only the one at home may stay with the session.
func (h *history) endTransaction(home *sql.Conn) {
	if h.set.local || h.set.on != home {
		h.set = changedSetting{}
	}
	if h.variables != nil && h.variables != home {
		h.variables = released
	}
	for _, p := range []*origin{&h.query, &h.write, &h.insert} {
		if p.conn != home {
			*p = origin{elsewhere: p.elsewhere || p.conn != nil}
		}
	}
	if h.last.conn == nil || h.last.conn != home {
		h.last = origin{elsewhere: true}
	}
}

// pools returns the databases of a route.
func (d *database) pools(to *plan.Route) []*sql.DB {
	switch to.Kind {
	case plan.Scatter:
		return distinct(to.Shards.Targets, func(t combine.Shard) *sql.DB { return d.poolOrHome(t.Target.DB) })
	case plan.Several:
		return distinct(to.Writes.Parts, func(p plan.Part) *sql.DB { return d.poolOrHome(p.Target.DB) })
	case plan.Copies:
		return append(distinct(d.router.Databases(), d.router.DB), d.home)
	}
	return []*sql.DB{d.poolOrHome(to.Target.DB)}
}

// only returns the database of a route, nil if there are several. It allocates nothing for one
// target.
func (d *database) only(to *plan.Route) *sql.DB {
	switch to.Kind {
	case plan.Scatter, plan.Several, plan.Copies:
		if pools := d.pools(to); len(pools) == 1 {
			return pools[0]
		}
		return nil
	}
	return d.poolOrHome(to.Target.DB)
}

func distinct[T any](list []T, pool func(T) *sql.DB) (all []*sql.DB) {
	seen := map[*sql.DB]bool{}
	for _, one := range list {
		if db := pool(one); !seen[db] {
			seen[db] = true
			all = append(all, db)
		}
	}
	return all
}

// change is what a statement changes in its session.
type change uint8

const (
	nothing change = iota
	settings
	variables
	begins // a transaction, by its text
	ends
)

// effects are what a text does to its session, and what it asks about earlier statements of it. They
// are found once for a plan, because they take a look at the whole text.
type effects struct {
	change  change
	local   bool     // what it changes ends with the transaction
	parsing bool     // it changes how the database parses SQL
	assigns bool     // it may set user variables, on a shard too
	ends    bool     // it ends the transaction in which it is executed
	about   []string // what aboutLast matches in it
}

// noEffects are the effects of nearly all statements.
var noEffects = &effects{}

// effectsOf returns the effects of a text. A regular expression takes much longer for a long text than
// the search for a word, so these come first.
func (s *server) effectsOf(text string, stateless bool) *effects {
	var e effects
	if !stateless {
		e.change, e.local = s.changed(text)
		e.parsing = (e.change == settings || e.change == begins) && parsesOtherwise.MatchString(text)
		e.assigns = e.change == variables && strings.Contains(text, ":=")
		e.ends = e.change == ends || s.Name() == "mysql" && (e.change == begins || commitsImplicitly(text, s.reads.Flavor))
	}
	if sqltext.Mentions(text, "found_rows", "_count", "last_insert", "changes", "lastval", "identity", "warnings", "errors", "diagnostics") {
		e.about = aboutLast.FindAllString(text, -1)
	}
	if e.change == nothing && e.about == nil && !e.ends {
		return noEffects
	}
	return &e
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
func (s *server) changed(query string) (of change, local bool) {
	family := s.Name()
	postgres, sqlite := family == "postgres", family == "sqlite"
	scan := sqltext.NewScanner(query, s.reads.Flavor)
	switch word, _ := scan.NextCode(); {
	case word.Is(query, "begin"), word.Is(query, "start"):
		return begins, false
	case word.Is(query, "commit"), word.Is(query, "rollback") && !toSavepoint.MatchString(query), word.Is(query, "end"), word.Is(query, "abort") && postgres:
		return ends, false
	case sqlite && word.Is(query, "savepoint"):
		return begins, false
	case sqlite && word.Is(query, "release"):
		return ends, false
	case sqlite && word.Is(query, "pragma") && setsPragma.MatchString(query[word.Start:]):
		return settings, false
	case word.Is(query, "reset") && postgres, postgres && sqltext.Mentions(query, "set_config") && setsConfig.MatchString(query):
		return settings, false
	case !word.Is(query, "set"):
		if family == "mysql" && variable(query, s.reads.Flavor) { // SELECT … INTO @x, SELECT @x := 3
			return variables, false
		}
		return nothing, false
	}
	depth, first := 0, true
	for {
		t, ok := scan.NextCode()
		switch {
		case !ok:
			return of, local
		case first:
			kind, ending := assigned(strings.ToLower(t.Text(query)), strings.ToLower(query[t.Start:]), postgres)
			if kind == settings || of == nothing {
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
func assigned(word, rest string, postgres bool) (of change, local bool) {
	switch {
	case strings.HasPrefix(rest, "@@global"), strings.HasPrefix(rest, "@@persist"):
		return nothing, false
	case strings.HasPrefix(rest, "@") && !strings.HasPrefix(rest, "@@"):
		return variables, false
	}
	switch word {
	case "global", "persist", "persist_only", "password", "resource":
		return nothing, false
	case "transaction", "constraints":
		return settings, true
	case "local":
		return settings, postgres
	}
	return settings, false
}

// variable reports whether a text has a user variable in it.
func variable(query string, f sqltext.Flavor) bool {
	if !strings.Contains(query, "@") {
		return false
	}
	scan := sqltext.NewScanner(query, f)
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
