// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// history is what earlier statements of a session have left on its inner connections. Other
// connections do not have it: a statement that depends on it and goes there is refused.
type history struct {
	// set is the connection on which a SET or BEGIN was executed, nil before any; text is that.
	set  *sql.Conn
	text string
	// local says that the setting ends with the transaction; begin that the text begins one.
	local, begin bool
	// variables is the connection on which a user variable was set, nil before any.
	variables *sql.Conn
	// last is the connection of the last statement, nil before any and if the session does not
	// hold it; elsewhere says that there was a statement that the session holds no connection of.
	last      *sql.Conn
	elsewhere bool
}

// aboutLast matches functions that return something about the last statement of their connection.
var aboutLast = regexp.MustCompile(`(?i)\b(found_rows|row_count|last_insert_id|changes|last_insert_rowid|lastval)\s*\(\s*\)`)

// admit chooses the database of a statement that any of them can execute, and refuses a statement
// that depends on an earlier one of the session and would be sent on another connection.
func (h *history) admit(s *session, to *plan.Route, query string) error {
	if to.Anywhere {
		to.Target.DB = s.tx.begunOn()
	}
	if h.set == nil && h.variables == nil && h.last == nil && !h.elsewhere {
		return nil
	}
	for _, pool := range s.database.pools(*to) {
		var on *sql.Conn
		if in, ok := s.held(s.tx, pool); ok {
			on = in.conn
		}
		switch {
		case h.set != nil && on != h.set:
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s holds on one connection, and this statement is for %s, on another one", sharding.ErrSettings, h.text, s.database.nameOf(pool)),
				Hint: "give the setting in the data source names of all databases, or send the statement on another connection than the SET"}
		case h.variables != nil && on != h.variables && variable(query, s.database.server.reads.Flavor):
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: its variable was set on one connection, and this statement is for %s, on another one", sharding.ErrSettings, s.database.nameOf(pool)),
				Hint: "give the value as an argument"}
		case h.elsewhere || on != h.last:
			if f := aboutLast.FindString(query); f != "" {
				return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s is about the last statement of a connection, and that went over another one", sharding.ErrSettings, f),
					Hint: "use the result of the last statement: its RowsAffected and LastInsertId, or COUNT(*) with its conditions"}
			}
		}
	}
	return nil
}

// remember records what an executed statement of the session has left on its connection.
func (h *history) remember(s *session, p *plan.Plan, to plan.Route, query string) {
	h.last, h.elsewhere = nil, true
	if s.tx == nil && s.home.conn == nil {
		return
	}
	pool := s.database.only(to)
	if pool == nil {
		return
	}
	in, holds := s.held(s.tx, pool)
	if !holds {
		return
	}
	h.last, h.elsewhere = in.conn, false
	if to.Kind != plan.Home || p.Stateless() {
		return
	}
	switch change, local := s.database.server.changed(query); change {
	case settings, begins: // what lasts longer is kept
		if lasts := change == settings && !local; h.set == nil || lasts {
			h.set, h.text, h.local, h.begin = in.conn, strings.TrimSpace(query), local, change == begins
		}
	case ends:
		if h.begin {
			h.set, h.text, h.begin = nil, "", false
		}
	case variables:
		h.variables = in.conn
	}
}

// endTransaction forgets what ends with a transaction: what was left on its connections, of which
// only the one at home may stay with the session.
func (h *history) endTransaction(home *sql.Conn) {
	if h.local || h.set != home {
		h.set, h.text, h.local, h.begin = nil, "", false, false
	}
	if h.variables != home {
		h.variables = nil
	}
	if h.last == nil || h.last != home {
		h.last, h.elsewhere = nil, true
	}
}

// pools returns the databases of a route.
func (d *database) pools(to plan.Route) []*sql.DB {
	switch to.Kind {
	case plan.Scatter:
		return distinct(to.Shards.Targets, func(t plan.Shard) *sql.DB { return d.poolOrHome(t.Target.DB) })
	case plan.Several:
		return distinct(to.Writes.Parts, func(p plan.Part) *sql.DB { return d.poolOrHome(p.Target.DB) })
	case plan.Copies:
		return append(distinct(d.router.Databases(), d.router.DB), d.home)
	}
	return []*sql.DB{d.poolOrHome(to.Target.DB)}
}

// only returns the database of a route, nil if there are several. It allocates nothing for one
// target.
func (d *database) only(to plan.Route) *sql.DB {
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

var toSavepoint = regexp.MustCompile(`(?i)\brollback\s+((work|transaction)\s+)?to\b`)

var setsConfig = regexp.MustCompile(`(?i)\bset_config\s*\(`)

// changed returns what a statement at home changes, and whether that ends with the transaction. SET
// GLOBAL and similar statements change no session.
func (s *server) changed(query string) (of change, local bool) {
	family := s.Name()
	postgres := family == "postgres"
	scan := sqltext.NewScanner(query, s.reads.Flavor)
	switch word, _ := scan.NextCode(); {
	case word.Is(query, "begin"), word.Is(query, "start"):
		return begins, false
	case word.Is(query, "commit"), word.Is(query, "rollback") && !toSavepoint.MatchString(query), word.Is(query, "end"):
		return ends, false
	case word.Is(query, "reset") && postgres, postgres && setsConfig.MatchString(query):
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
