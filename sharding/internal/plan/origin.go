package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// origin returns where the tables of a statement still lie that a Migration is moving,
// if all sharded tables that it names are such: there it is sent as it is, as it was
// before the migration.
func origin(st *sqlparse.Statement, s *sharding.Snapshot) *sharding.Target {
	var at *sharding.Target
	for _, name := range st.Names {
		t, ok := s.Lookup(name)
		if !ok {
			continue
		}
		from := t.Origin()
		if from == nil || at != nil && at.DB != from.Target.DB {
			return nil
		}
		if at == nil {
			at = &from.Target
		}
	}
	return at
}

// unread returns a table of the statement of which nobody has read yet which place
// serves it, or "".
func unread(st *sqlparse.Statement, s *sharding.Snapshot) string {
	for _, name := range st.Names {
		if t, ok := s.Lookup(name); ok {
			if _, err := t.Everywhere(); errors.Is(err, sharding.ErrRouteUnread) {
				return t.Name
			}
		}
	}
	return ""
}

// atOrigin routes a statement whose tables lie in the source of a migration. Only rows
// are changed there: the migration copies them, and would not notice that a table was
// emptied or changed.
func (p *Plan) atOrigin(hint sharding.Hint) (Route, error) {
	if word := definition(p.statement); word != "" && word != "CREATE" {
		return Route{}, p.refusal(p.origin.Table, sharding.ErrRawTable,
			"its rows are being migrated; change the table before or after that, or use sharding.Unsharded if the statement is about another one")
	}
	if hint.Placed() && hint.Table == "" && hint.On != *p.origin {
		return Route{}, p.refusal(p.origin.Table, sharding.ErrCrossShard,
			fmt.Sprintf("%s serves its rows until the migration's switch, and the context names %s; leave sharding.On out", p.origin, hint.On))
	}
	for _, r := range p.refs {
		if r.role == home && p.origin.DB != p.options.Home {
			return Route{}, p.refusal(r.label(), sharding.ErrCrossDatabase,
				fmt.Sprintf("it is a table of the home database, and %s is in %s", p.origin.Table, p.origin.DB))
		}
	}
	return Route{Kind: One, Target: *p.origin, Text: p.statement.Text}, nil
}

// Single reports whether the statement was read. A text that was not may be several
// statements, of which some are done when another one fails.
func (p *Plan) Single() bool { return p.statement.Verb != sqlparse.Unknown }

// Routed reports whether the statement names a table of the router.
func (p *Plan) Routed() bool { return p.routed }

// namesRouted is what Routed reports.
func (p *Plan) namesRouted() bool {
	return len(p.sharded) > 0 || slices.ContainsFunc(p.statement.Names, func(name string) bool {
		_, ok := p.snapshot.Lookup(name)
		return ok
	})
}
