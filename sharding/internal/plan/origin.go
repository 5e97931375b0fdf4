package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// origin returns where the tables of a statement still lie that a Migration is moving,
// if all sharded tables that it names are such: there it is sent as it is, whatever it
// says, as it was before the migration.
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

// atOrigin routes a statement whose tables lie in the source of a migration.
func (p *Plan) atOrigin() (Route, error) {
	for _, r := range p.refs {
		if r.role == home && p.origin.DB != p.options.Home {
			return Route{}, p.refusal(r.label(), sharding.ErrCrossDatabase,
				fmt.Sprintf("it is a table of the home database, and %s is in %s", p.origin.Table, p.origin.DB))
		}
	}
	return Route{Kind: One, Target: *p.origin, Text: p.statement.Text}, nil
}

// Routed reports whether the statement names a table of the router.
func (p *Plan) Routed() bool { return p.routed }

// namesRouted is what Routed reports.
func (p *Plan) namesRouted() bool {
	return len(p.sharded) > 0 || slices.ContainsFunc(p.statement.Names, func(name string) bool {
		_, ok := p.snapshot.Lookup(name)
		return ok
	})
}
