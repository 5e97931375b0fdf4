package sqlxhook

import (
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// judge looks at what the statement does to the tables that it names, in every
// way it may be read.
func (n *naming) judge(x *expanded, query string) error {
	for _, flavor := range n.family.guardReadings(query) {
		p := tokens(query, flavor)
		if err := n.judgeReading(x, p); err != nil {
			return err
		}
	}
	return nil
}

func (n *naming) judgeReading(x *expanded, p *parser) error {
	verb := p.verb()
	into := -1
	if p.inserts() {
		into = p.target(verb+1) - 1
		if t, ok := n.table(p.stmt.table); ok {
			x.inserts = t
		}
	}
	if written := n.written(p, verb); written != "" {
		x.writes = written
	}
	if err := n.judgeForm(p, verb); err != nil {
		return err
	}
	for _, t := range n.tables {
		if column := p.assigned(t); column != "" {
			r := refusal(t, sharding.ErrKeyChange, "a row keeps its key; insert it on its new shard and delete it here")
			r.Column = column
			return r
		}
	}
	return n.judgeInserts(p, into)
}

// judgeForm refuses what is none of the statements that can be judged.
func (n *naming) judgeForm(p *parser, verb int) error {
	switch {
	case len(n.tables) == 0:
		return nil
	case p.several():
		return refusal(n.tables[0], sharding.ErrRawTable, "send one statement at a time")
	case p.inserts(), p.is(verb, "SELECT"), p.is(verb, "UPDATE"), p.is(verb, "DELETE"):
		return nil
	}
	return refusal(n.tables[0], sharding.ErrRawTable, "only SELECT, INSERT, REPLACE, UPDATE and DELETE go to shards; send others with Shard.Unguarded")
}

// judgeInserts refuses rows that are inserted where placement does not look.
func (n *naming) judgeInserts(p *parser, into int) error {
	for i := range p.tokens {
		if !p.is(i, "INTO") || i+1 == into {
			continue
		}
		at := p.qualified(i + 1)
		if at >= len(p.tokens) || at == into {
			continue
		}
		if t, ok := n.table(sqltext.Name(p.sql, p.tokens[at])); ok {
			return refusal(t, sharding.ErrRawTable, "insert with a statement of its own")
		}
	}
	return nil
}

// written returns the broadcast table that the statement may write.
func (n *naming) written(p *parser, verb int) string {
	if p.is(verb, "SELECT") && !p.writesInside() {
		return ""
	}
	for _, name := range n.broadcast {
		if p.stmt.table == "" || strings.EqualFold(p.stmt.table, name) {
			return name
		}
	}
	return ""
}

// writesInside reports whether a WITH clause may write.
func (p *parser) writesInside() bool {
	for i := range p.tokens {
		if p.is(0, "WITH") && (p.is(i, "INSERT") || p.is(i, "UPDATE") || p.is(i, "DELETE")) {
			return true
		}
	}
	return false
}

// inserts reports whether the statement is an INSERT or a REPLACE.
func (p *parser) inserts() bool {
	verb := p.verb()
	return p.is(verb, "INSERT") || p.is(verb, "REPLACE")
}

// several reports whether something follows a semicolon.
func (p *parser) several() bool {
	for i := range p.tokens {
		if p.is(i, ";") && i+1 < len(p.tokens) {
			return true
		}
	}
	return false
}

// assigned returns the column that leads to the shard of t and that the
// statement gives to rows that are there; "" if there is none.
func (p *parser) assigned(t *sharding.Table) string {
	inserts := p.inserts()
	for i := range p.tokens {
		update := p.is(i, "UPDATE") && p.is(i-1, "KEY")
		set := p.is(i, "SET") && (!inserts || p.is(i-1, "UPDATE")) // the others are INSERT's own
		if !update && !set {
			continue
		}
		if column := p.assignedFrom(i+1, t); column != "" {
			return column
		}
	}
	return ""
}

// assignedFrom looks through the assignments that begin at i: a = x, b = y and
// (a, b) = (x, y).
func (p *parser) assignedFrom(i int, t *sharding.Table) string {
	for first := true; i < len(p.tokens) && (first || !p.endsAssignments(i)); first, i = false, p.after(i) {
		if !first && !p.is(i-1, ",") {
			continue
		}
		last := p.qualified(i)
		if p.is(i, "(") {
			last = p.closing(i)
		}
		for j := i; j <= last && j < len(p.tokens); j++ {
			if name := sqltext.Name(p.sql, p.tokens[j]); t.Leads(name) {
				return name
			}
		}
	}
	return ""
}

func (p *parser) endsAssignments(i int) bool {
	return p.is(i, "WHERE") || p.is(i, "FROM") || p.is(i, "RETURNING") || p.is(i, "ORDER") || p.is(i, "LIMIT") || p.is(i, ";")
}

// qualified returns the index of the last part of the name at i.
func (p *parser) qualified(i int) int {
	for i+2 < len(p.tokens) && p.is(i+1, ".") {
		i += 2
	}
	return i
}
