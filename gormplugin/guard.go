package gormplugin

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// guard looks at the final text of every statement, last of all, and stops the
// ones that name a sharded table without a shard having been chosen.
type guard struct {
	router   *sharding.Router
	tables   []sharding.Table // as they were first: their names stay
	initials [256]bool        // bytes that a name of theirs may begin with, in any case
	copies   []string         // names of broadcast tables
	readings []sqltext.Flavor // every way in which the server may read a text
	strings  bool             // a string may stand for an identifier
	keywords bool             // a table is called like a keyword
	passed   *memory[verdict] // routed texts
}

func newGuard(dialect string, router *sharding.Router) (guard, error) {
	g := guard{router: router, tables: router.Tables(), copies: router.Broadcasts(), passed: newMemory[verdict](maxRemembered)}
	for i := range g.tables {
		name := g.tables[i].Name
		g.keywords = g.keywords || sqltext.Reserved(name)
		for c := range g.initials {
			g.initials[c] = g.initials[c] || byte(c)|0x20 == name[0]|0x20
		}
	}
	switch dialect {
	case "mysql":
		// What sql_mode says is unknown here, so both its switches count.
		for _, off := range []sqltext.Flavor{0, sqltext.BackslashEscapes, sqltext.DoubleQuoteStrings, sqltext.BackslashEscapes | sqltext.DoubleQuoteStrings} {
			g.readings = append(g.readings, sqltext.MySQL&^off)
		}
	case "sqlite":
		g.readings, g.strings = []sqltext.Flavor{sqltext.SQLite}, true
	default:
		return guard{}, fmt.Errorf("a Router needs MySQL, MariaDB or SQLite, not %q", dialect)
	}
	return g, nil
}

// unrouted checks a statement for which no shard was chosen, and which goes to
// the database at; nil is one that is not known here.
func (g *guard) unrouted(query string, at *sql.DB) error {
	if err := g.unsharded(query, at); err != nil {
		return err
	}
	return g.copied(query)
}

// unsharded is unrouted for texts that may change broadcast tables.
func (g *guard) unsharded(query string, at *sql.DB) error {
	if !g.mentions(query) {
		return nil
	}
	return g.unplaced(query, g.router.Snapshot(), at)
}

// unplaced is unrouted with what the router knew when the statement began.
func (g *guard) unplaced(query string, snapshot *sharding.Snapshot, at *sql.DB) error {
	if sqltext.Versioned(query, g.readingsOf(query)) {
		return &sharding.RouteError{Op: "SQL that has the name of a sharded table", Err: sharding.ErrRawTable, Hint: sqltext.VersionedHint}
	}
	for _, f := range g.readingsOf(query) {
		names := sqltext.NewTables(query, f)
		for t, table, ok := names.Next(); ok; t, table, ok = names.Next() {
			if !table {
				continue
			}
			if named := g.named(query, names.Previous(), t); named != nil && !g.isAt(named, query, snapshot, at) {
				return rawText(query, named)
			}
		}
	}
	return nil
}

// readingsOf returns the readings that can differ for this text: only double
// quotes and backslashes are read in more than one way.
func (g *guard) readingsOf(sql string) []sqltext.Flavor {
	if strings.IndexByte(sql, '\\') < 0 && strings.IndexByte(sql, '"') < 0 {
		return g.readings[:1]
	}
	return g.readings
}

// rawText is the refusal of a text that names a sharded table.
func rawText(query string, t *sharding.Table) error {
	scanner := sqltext.NewScanner(query, sqltext.SQLite)
	if verb, _ := scanner.NextCode(); isDefinition(query, verb) {
		return &sharding.RouteError{
			Op: strings.ToUpper(verb.Text(query)) + " of", Table: t.Name, Err: sharding.ErrRawTable,
			Hint: "create and change its tables with gormplugin.Migrate; for all else run the text for each of Router.Targets, on Router.DB with the target's table",
		}
	}
	return rawTable("raw SQL on", t)
}

// definitionVerbs begin statements about tables, not rows.
var definitionVerbs = strings.Fields("CREATE ALTER DROP TRUNCATE RENAME")

func isDefinition(query string, verb sqltext.Token) bool {
	return slices.ContainsFunc(definitionVerbs, func(word string) bool { return verb.Is(query, word) })
}

func rawTable(op string, t *sharding.Table) error {
	return &sharding.RouteError{
		Op: op, Table: t.Name, Err: sharding.ErrRawTable,
		Hint: "use a statement on the model with a condition on " + t.Key + ", or name the shard with sharding.OnKey or sharding.On; a subquery is run first, as a statement of its own",
	}
}

// mentions finds, faster than a scan, that a text has none of the names.
func (g *guard) mentions(sql string) bool {
	for at := range len(sql) {
		if !g.initials[sql[at]] {
			continue
		}
		for i := range g.tables {
			if beginsFold(sql[at:], g.tables[i].Name) {
				return true
			}
		}
	}
	return false
}

// beginsFold reports whether s begins with the name, in any case.
func beginsFold(s, name string) bool {
	return len(s) >= len(name) && s[0]|0x20 == name[0]|0x20 && strings.EqualFold(s[:len(name)], name)
}

func containsFold(s, name string) bool {
	for i := 0; i+len(name) <= len(s); i++ {
		if beginsFold(s[i:], name) {
			return true
		}
	}
	return false
}

// named returns the sharded table that the token names, if any. The keyword in
// ORDER BY is no table called order.
func (g *guard) named(sql string, previous, t sqltext.Token) *sharding.Table {
	var name string
	switch {
	case t.Kind == sqltext.Word && g.keywords && !previous.Is(sql, ".") && sqltext.Reserved(t.Text(sql)):
		return nil
	case t.Kind == sqltext.Word || t.Kind == sqltext.QuotedIdent:
		name = sqltext.Ident(sql, t)
	case t.Kind == sqltext.String && g.strings:
		// SQLite takes a string for a table's name where it needs one.
		name = strings.Trim(t.Text(sql), "'")
	default:
		return nil
	}
	return g.table(name)
}

// table returns the sharded table with this logical name, in any case.
func (g *guard) table(name string) *sharding.Table {
	for i := range g.tables {
		if isSameName(name, g.tables[i].Name) {
			return &g.tables[i]
		}
	}
	return nil
}

// routed checks a statement that was pointed at one target: a sharded table's
// logical name may only be its alias, and no second table may be read but through
// Joins, as what it holds on this shard is not what the statement means.
// The tables of a join were seen to when it was written.
func (g *guard) routed(op, sql string, table *sharding.Table, joined bool) error {
	if len(sql) > maxRemembered {
		sql = squeezed(sql)
	}
	as := verdict{table.Name, joined}
	if was := g.passed.get(sql); was != nil && *was == as {
		return nil
	}
	for _, f := range g.readingsOf(sql) {
		if err := g.routedReading(op, sql, table, joined, f); err != nil {
			return err
		}
	}
	g.passed.put(sql, as)
	return nil
}

func (g *guard) routedReading(op, sql string, table *sharding.Table, joined bool, f sqltext.Flavor) error {
	names := sqltext.NewTables(sql, f)
	for first := true; ; first = false {
		t, isTable, ok := names.Next()
		if !ok {
			break
		}
		if !first && isSecondTable(sql, t) && !(joined && t.Is(sql, "JOIN")) {
			return &sharding.RouteError{
				Op: op, Table: table.Name, Err: sharding.ErrCrossShard,
				Hint: "besides its own table it may read those of its Group and broadcast tables, through Joins; run a subquery first, as a statement of its own",
			}
		}
		if !isTable {
			continue
		}
		if named := g.named(sql, names.Previous(), t); named != nil && !isDeleted(sql, &names) {
			return rawTable(op, named)
		}
	}
	if names.Unclosed() {
		return &sharding.RouteError{Op: op, Table: table.Name, Err: sharding.ErrRawTable, Hint: "a literal or a comment is not closed"}
	}
	return nil
}

// isSecondTable reports whether t begins another table source or statement.
func isSecondTable(sql string, t sqltext.Token) bool {
	if t.Kind == sqltext.Op {
		return sql[t.Start] == ';'
	}
	if t.Kind != sqltext.Word {
		return false
	}
	for _, word := range [...]string{"SELECT", "JOIN", "STRAIGHT_JOIN", "UNION", "INTERSECT", "EXCEPT", "TABLE"} {
		if len(word) == t.End-t.Start && strings.EqualFold(t.Text(sql), word) {
			return true
		}
	}
	return false
}

// isDeleted reports whether the walk stands on the alias in DELETE orders FROM
// orders_3 AS orders.
func isDeleted(sql string, names *sqltext.Tables) bool {
	rest := names.Rest()
	next, ok := rest.NextCode()
	return ok && names.Previous().Is(sql, "DELETE") && next.Is(sql, "FROM")
}
