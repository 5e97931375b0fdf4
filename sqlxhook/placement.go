package sqlxhook

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/shardid/shardid/sharding"
)

// placement checks that rows inserted into a physical table of a sharded one
// belong there: a row on the wrong shard is found by nobody.
type placement struct {
	hook     *Hook
	table    sharding.Table
	physical string
	key      field
}

// placementOf guards a statement against logical names and prepares the check
// of its rows; nil when there is nothing to check.
func (h *Hook) placementOf(k planKey, query string, s *statement) (*placement, error) {
	if h.router == nil {
		return nil, nil
	}
	if err := h.guard(query, k.family); err != nil {
		return nil, err
	}
	tables := h.physical[strings.ToLower(s.table)]
	if !s.insert || len(tables) != 1 {
		return nil, nil
	}
	p := &placement{hook: h, table: *tables[0], physical: s.table}
	param, err := s.keyParam(p.table.Key)
	if err != nil {
		return nil, p.refuse(err)
	}
	if param == "" {
		return nil, nil
	}
	p.key, err = fieldOf(k.mapper, k.typ, param)
	return p, err
}

// keyParam returns the parameter that gives a column its value, "" if that is
// an expression or if the statement does not tell.
func (s *statement) keyParam(column string) (string, error) {
	if s.columns == nil || s.groups == 0 {
		return "", nil
	}
	for i, c := range s.columns {
		if !strings.EqualFold(c, column) {
			continue
		}
		if i < len(s.values) && s.values[i].plain {
			return s.values[i].params[0], nil
		}
		return "", nil
	}
	return "", sharding.ErrMissingKey
}

// check refuses rows that belong elsewhere.
func (p *placement) check(e rebinder, r *rows) error {
	if p == nil {
		return nil
	}
	for i := range r.n {
		v, err := p.key.of(r.at(i))
		if err != nil {
			return &RowError{Row: i, Field: p.key.name, Err: err}
		}
		target, err := p.hook.router.Target(p.table.Name, v.Interface())
		var route *sharding.RouteError
		if errors.As(err, &route) {
			err = route.Err
		}
		if err == nil && !p.isAt(e, target) {
			err = fmt.Errorf("belongs to %s: %w", target, sharding.ErrCrossShard)
		}
		if err != nil {
			return p.refuse(fmt.Errorf("row %d: %w", i, err))
		}
	}
	return nil
}

// isAt reports whether the statement goes to target. The database can only be
// told for an *sqlx.DB over one of the router's databases.
func (p *placement) isAt(e rebinder, target sharding.Target) bool {
	if !strings.EqualFold(p.physical, target.Table) {
		return false
	}
	db, ok := e.(*sqlx.DB)
	if !ok {
		return true
	}
	for name, shard := range p.hook.shards {
		if shard.DB == db.DB {
			return name == target.DB
		}
	}
	return true
}

func (p *placement) refuse(err error) error {
	return &sharding.RouteError{
		Op: "insert into " + p.physical, Table: p.table.Name, Column: p.table.Key, Err: err,
		Hint: "take the target from Hook.For or GroupBy",
	}
}
