// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/sharding"
)

// Carried returns one of the table's own triggers in the form for its i-th shard. If that
// is impossible, why says the reason, and fix what to do.
func (all Tables) Carried(t *Table, own backend.OwnTrigger, i int) (carried backend.Trigger, why, fix string) {
	const leave = "move what it does into the application, and drop it"
	switch {
	case own.Foreign != "":
		return carried, own.Foreign, leave
	case !own.IsGuarded():
		return carried, "it would also run for rows that the job writes, and repeat its changes", "make it skip them, in one connection: " + own.Guarded(t.Name)
	}
	to := t.Conf.Map.Targets()[i]
	name := own.Name + "_" + to.Table
	if number, ok := strings.CutPrefix(to.Table, t.Conf.Name); ok {
		name = own.Name + number
	}
	if utf8.RuneCountInString(name) > 64 {
		return carried, "its name on a shard, " + name + ", would be longer than the 64 letters that servers take", "give it a shorter one"
	}
	r := reader{tables: all, of: t, own: own, to: to}
	body, err := r.read()
	if err != "" {
		return carried, err, leave
	}
	physical := to.Table
	if i < len(t.Targets) {
		physical = t.Targets[i].Present()
	}
	return own.On(name, physical, body), "", ""
}

// beside is the physical table of another table that has the same slots as a target of t.
func beside(t *Table, to sharding.Target, other *Table) (name, why string) {
	if t.IDs != nil || other.IDs != nil {
		return "", "ids are renumbered"
	}
	mine, theirs := t.Conf.Cycle(), other.Conf.Cycle()
	if ruleText(t.Conf.Rule) != ruleText(other.Conf.Rule) || len(mine) != len(theirs) {
		return "", other.Conf.Name + " is not sharded by the same rule over as many tables"
	}
	for slot, at := range mine {
		switch there := theirs[slot]; {
		case at != to:
		case there.DB != at.DB:
			return "", fmt.Sprintf("%s is on %s where %s is on %s", other.Conf.Name, there.DB, t.Conf.Name, at.DB)
		case name != "" && name != there.Table:
			return "", fmt.Sprintf("rows of %s belong to several tables of %s", to.Table, other.Conf.Name)
		default:
			name = there.Table
		}
	}
	return name, ""
}

// reader finds the tables that a trigger names. It knows a part of SQL, and refuses what it
// does not know.
type reader struct {
	tables Tables
	of     *Table
	own    backend.OwnTrigger
	to     sharding.Target

	tokens []sqltext.Token
	out    strings.Builder
	done   int // bytes of the body that are copied
	verb   string
	lists  []int // depths of parentheses in which tables are listed
}

var (
	triggerForbidden = []string{"CALL", "PREPARE", "EXECUTE", "DEALLOCATE", "LAST_INSERT_ID", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER", "DATABASE", "SCHEMA", "NEXTVAL", "LASTVAL", "SETVAL", "NEXT", "PREVIOUS", "TRUNCATE", "WITH"}
	triggerModifiers = []string{"LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE", "QUICK", "INTO", "FROM"}
	triggerListEnds  = []string{"WHERE", "SET", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "VALUES", "VALUE", "THEN", "DO", "ELSE", "KEY"}
)

func (r *reader) read() (body, why string) {
	if why := r.scan(); why != "" {
		return "", why
	}
	expects, depth := false, 0
	for i, token := range r.tokens {
		switch {
		case r.is(i, "("):
			depth++
			continue
		case r.is(i, ")"):
			depth--
			r.lists = slices.DeleteFunc(r.lists, func(at int) bool { return at > depth })
			expects = false
			continue
		case r.is(i, ";"):
			r.lists, r.verb, expects = nil, "", false
			continue
		case r.is(i, ",") && slices.Contains(r.lists, depth):
			return "", "it lists tables with commas"
		case token.Kind != sqltext.Word && token.Kind != sqltext.QuotedIdent, r.is(i-1, "."):
			if r.is(i-1, ".") && r.is(i+1, "(") || r.is(i-1, ".") && r.is(i+1, ".") {
				return "", "it names something of a database by the database's name"
			}
			continue
		}
		if expects && (r.isOneOf(i, triggerModifiers) || r.is(i, "SELECT")) {
			expects = expects && !r.is(i, "SELECT")
		} else if expects {
			expects = false
			if why := r.table(i); why != "" {
				return "", why
			}
			continue
		}
		if why := r.word(i, depth, &expects); why != "" {
			return "", why
		}
	}
	r.out.WriteString(r.own.Body[r.done:])
	return r.out.String(), ""
}

// scan reads the tokens outside of comments and texts.
func (r *reader) scan() (why string) {
	scanner := sqltext.NewScanner(r.own.Body, sqltext.MySQL)
	for {
		token, ok := scanner.Next()
		if !ok {
			return ""
		}
		text := token.Text(r.own.Body)
		switch {
		case token.Kind == sqltext.Comment && strings.HasPrefix(text, "/*") && strings.Contains(text[:min(4, len(text))], "!"):
			return "some of its code is in a comment that servers execute"
		case token.Kind != sqltext.Space && token.Kind != sqltext.Comment:
			r.tokens = append(r.tokens, token)
		}
	}
}

func (r *reader) is(i int, what string) bool {
	return i >= 0 && i < len(r.tokens) && r.tokens[i].Is(r.own.Body, what)
}

func (r *reader) isOneOf(i int, all []string) bool {
	return slices.ContainsFunc(all, func(what string) bool { return r.is(i, what) })
}

// word reads a word that is not the name of a table where one is expected.
func (r *reader) word(i, depth int, expects *bool) (why string) {
	name := sqltext.Ident(r.own.Body, r.tokens[i])
	known := r.tables.named(name)
	switch {
	case r.is(i+1, ".") && known != nil:
		return r.replace(i, known)
	case r.is(i+1, "."):
	case known != nil:
		return "it uses the name " + known.Conf.Name + ", which is that of a table, for something else"
	case r.is(i+1, "(") && slices.ContainsFunc(r.own.Routines, func(routine string) bool { return strings.EqualFold(routine, name) }):
		return "it calls the function " + name
	case r.isOneOf(i, triggerForbidden):
		return "it uses " + strings.ToUpper(name)
	case r.is(i, "SELECT"):
		r.verb = "SELECT"
	case (r.is(i, "INSERT") || r.is(i, "REPLACE")) && !r.is(i+1, "("):
		r.verb, *expects = "INSERT", true
	case r.is(i, "DELETE"):
		*expects = true
	case r.is(i, "UPDATE") && !r.is(i-1, "FOR") && !r.is(i-1, "KEY"), r.is(i, "FROM"), r.is(i, "JOIN"), r.is(i, "STRAIGHT_JOIN"):
		*expects = true
		r.lists = append(r.lists, depth)
		if r.is(i, "UPDATE") {
			r.verb = "UPDATE"
		}
	case r.isOneOf(i, triggerListEnds):
		r.lists = slices.DeleteFunc(r.lists, func(at int) bool { return at == depth })
	}
	return ""
}

// named finds a table of the job by its name in applications.
func (all Tables) named(name string) *Table {
	for _, t := range all {
		if strings.EqualFold(t.Conf.Name, name) {
			return t
		}
	}
	return nil
}

// table reads the name of a table.
func (r *reader) table(i int) (why string) {
	name := sqltext.Ident(r.own.Body, r.tokens[i])
	known := r.tables.named(name)
	switch {
	case r.is(i+1, "."):
		return "it names a table by its database"
	case known == nil:
		return "it names " + name + ", which is no table of the job"
	case r.verb == "INSERT" && !r.givesKey(i+1, known):
		return "it inserts into " + name + " without a list of columns that has " + known.Key + ", which no shard counts"
	}
	if r.verb == "INSERT" {
		r.verb = ""
	}
	return r.replace(i, known)
}

// givesKey reports whether a list of columns with the primary key follows.
func (r *reader) givesKey(i int, t *Table) bool {
	if !r.is(i, "(") {
		return false
	}
	for ; i < len(r.tokens) && !r.is(i, ")"); i++ {
		if strings.EqualFold(sqltext.Ident(r.own.Body, r.tokens[i]), t.Key) {
			return true
		}
	}
	return false
}

// replace writes the physical name of a table.
func (r *reader) replace(i int, t *Table) (why string) {
	name, why := r.to.Table, ""
	if t != r.of {
		name, why = beside(r.of, r.to, t)
	}
	if why != "" {
		return "it names " + t.Conf.Name + ": " + why
	}
	at := r.tokens[i]
	r.out.WriteString(r.own.Body[r.done:at.Start])
	r.out.WriteString("`" + strings.ReplaceAll(name, "`", "``") + "`")
	r.done = at.End
	return ""
}

// OwnTriggers are the table's own triggers that its i-th shard gets.
func (all Tables) OwnTriggers(t *Table, i int) []backend.Trigger {
	var carried []backend.Trigger
	for _, own := range t.Own {
		if trigger, why, _ := all.Carried(t, own, i); why == "" {
			carried = append(carried, trigger)
		}
	}
	return carried
}

// checkOwnTriggers fails when a table has triggers that its shards would not have.
func (all Tables) checkOwnTriggers() error {
	for _, t := range all {
		for _, own := range t.Own {
			for i := range t.Conf.Map.Targets() {
				if _, why, fix := all.Carried(t, own, i); why != "" {
					return fmt.Errorf("%w: table %s has the trigger %s, which the shards would not have: %s; %s", backend.ErrUnsupported, t.Name, own.Name, why, fix)
				}
			}
		}
	}
	return nil
}
