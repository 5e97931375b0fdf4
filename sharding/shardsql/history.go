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
	"github.com/shardid/shardid/sharding/internal/effects"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// history is what earlier statements of a session have left on its inner connections. Other
// connections do not have it: a statement that depends on it and goes there is refused.
type history struct {
	set changedSetting
	// begun is set when a text, not BeginTx, may have begun a transaction, and manual when each statement may begin one, after SET
	// autocommit = 0. What such a transaction has locked is not known.
	begun, manual bool
	// The connections on which a user variable was set, on which the last statement was executed, and the last one of each kind:
	// nil before any, and released if the session does not hold it.
	variables, last, query, write, insert *sql.Conn
}

// changedSetting is what SET, BEGIN or a similar text has changed in a session.
type changedSetting struct {
	on           *sql.Conn // nil before any
	text         string
	local, begin bool   // it ends with the transaction; it begins one
	decisive     string // the text that changed how the database parses SQL, or which rows and digits it returns, or ""
}

// released stands for a connection that a session does not hold any more.
var released = new(sql.Conn)

// about returns the connection of the statement that one of effects.About is about.
func (h *history) about(what string) *sql.Conn {
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
	if !isRefusal(err) {
		h.last = onlyHeld(s, to)
	}
}

// note records where a statement was executed.
func (h *history) note(p *plan.Plan, on *sql.Conn) {
	h.last = on
	switch p.Statement.Verb {
	case sqlparse.Select:
		h.query = on
	case sqlparse.Insert, sqlparse.Replace:
		h.write, h.insert = on, on
		return
	case sqlparse.Update, sqlparse.Delete:
		h.write = on
	}
	if p.SetsLastID {
		h.insert = on
	}
}

// admit refuses a statement that the session must not send, and returns the route of the others. It chooses the
// database of a statement that any of them can execute.
func (h *history) admit(s *session, to *plan.Route, query string, e *effects.Effects) (*plan.Route, error) {
	if err := admitEnd(s.tx, e, query); err != nil {
		return nil, err
	}
	if to.Anywhere && s.tx.began() {
		there := *to
		there.Target.DB = s.tx.begunOn()
		to = &there
	}
	if h.set.on == nil && h.variables == nil && h.last == nil {
		return to, nil
	}
	return to, h.depends(s, to, query, e)
}

// elsewhere is the hint for a statement after a SET on another connection.
const elsewhere = "give the setting in the data source names of all databases, or send the statement on another connection than the SET"

// depends returns the refusal of a statement that depends on an earlier one of the session and would be sent on
// another connection.
func (h *history) depends(s *session, to *plan.Route, query string, e *effects.Effects) error {
	for _, pool := range s.database.pools(to) {
		in, _ := s.held(pool)
		on := in.SQL
		switch {
		case h.set.on != nil && on != h.set.on:
			hint := elsewhere
			switch {
			case h.set.begin:
				hint = "begin transactions with BeginTx, so that their statements go to their shards"
			case s.tx != nil && s.database.server.Name() == "postgres":
				hint = "set it with SET LOCAL, which is executed on all databases of the transaction, or " + elsewhere
			}
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s holds on one connection, and this statement is for %s, on another one", sharding.ErrSettings, h.set.text, s.database.nameOf(pool)), Hint: hint}
		case h.set.decisive != "" && to.Kind != plan.Home:
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: after %s, the database may parse this statement otherwise than its route was found, or return other rows or digits than are combined", sharding.ErrSettings, h.set.decisive),
				Hint: elsewhere}
		case h.variables != nil && on != h.variables && effects.NamesVariable(query, s.database.server.Reads):
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: its variable was set on one connection, and this statement is for %s, on another one", sharding.ErrSettings, s.database.nameOf(pool)),
				Hint: "give the value as an argument"}
		}
		for _, f := range e.About {
			if was := h.about(f); was != nil && was != on {
				return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s is about an earlier statement of a connection, and that went over another one", sharding.ErrSettings, f),
					Hint: "use the result of the earlier statement: its RowsAffected and LastInsertId, or COUNT(*) with its conditions"}
			}
		}
	}
	return nil
}

// remember records what an executed statement of the session has left on its connection.
func (h *history) remember(s *session, p *plan.Plan, to *plan.Route, query string, e *effects.Effects) {
	on := onlyHeld(s, to)
	h.note(p, on)
	if to.Kind != plan.Home && e.Assigns {
		h.variables = on
	}
	if on == released || to.Kind != plan.Home {
		return
	}
	switch e.Change {
	case effects.Settings, effects.Begins: // what lasts longer is kept
		h.begun = h.begun || e.Change == effects.Begins
		if s.database.server.Name() == "mysql" && sqltext.Mentions(query, "autocommit") {
			was := h.manual
			h.manual = !autocommits.MatchString(query)
			h.begun = h.begun && (h.manual || !was) // only a change of the setting commits
		}
		if lasts := e.Change == effects.Settings && !e.Local; h.set.on == nil || lasts {
			h.set = changedSetting{on: on, text: strings.TrimSpace(query), local: e.Local, begin: e.Change == effects.Begins, decisive: h.set.decisive}
		}
		if e.Decides {
			h.set.decisive = strings.TrimSpace(query)
		}
	case effects.Ends:
		verb, _ := effects.SavepointOf(query)
		isEnd := h.set.begin && h.isEndedBy(query)
		h.begun = h.begun && !isEnd && verb == effects.Release || chains.MatchString(query)
		if isEnd {
			h.set = changedSetting{}
		}
	case effects.Variables:
		h.variables = on
	}
}

var (
	autocommits = regexp.MustCompile("(?i)\\bautocommit`?\\s*:?=\\s*['\"]?(1|on|true|default)\\b")
	chains      = regexp.MustCompile(`(?i)\band\s+chain\b`)
)

// isOpen reports whether a text may have begun a transaction that has not ended.
func (h *history) isOpen() bool { return h.begun || h.manual }

// isEndedBy reports whether a text ends the transaction that h.set began. On SQLite a SAVEPOINT begins one, which
// its RELEASE ends.
func (h *history) isEndedBy(query string) bool {
	verb, name := effects.SavepointOf(query)
	first, begun := effects.SavepointOf(h.set.text)
	return verb != effects.Release || first == effects.Set && begun == name
}

// onlyHeld returns the connection that a session holds to the only database of a route, released if it holds none.
func onlyHeld(s *session, to *plan.Route) *sql.Conn {
	if s.tx == nil && s.home.SQL == nil {
		return released
	}
	if in, holds := s.held(s.database.only(to)); holds {
		return in.SQL
	}
	return released
}

// endTransaction forgets what ends with a transaction: what was left on its connections, of which
// only the one at home may stay with the session.
func (h *history) endTransaction(home *sql.Conn) {
	h.begun, h.manual = false, h.manual && home != nil
	if h.set.local || h.set.on != home {
		h.set = changedSetting{}
	}
	for _, on := range []**sql.Conn{&h.variables, &h.query, &h.write, &h.insert} {
		if *on != nil && *on != home {
			*on = released
		}
	}
	if h.last == nil || h.last != home {
		h.last = released
	}
}
