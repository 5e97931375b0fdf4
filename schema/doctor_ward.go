// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// ward is one database and the physical tables that are looked at there. One
// goroutine visits it.
type ward struct {
	name     string
	db       *sql.DB
	config   DoctorConfig
	patients []*patient
	findings []ShardFinding
}

// patient is one physical table.
type patient struct {
	Checkup

	table    *sharding.Table // nil for broadcast tables
	facts    table
	shape    shape             // zero while the table could not be read
	counter  *sharding.Counter // of a table that numbers rows in epochs
	findings []ShardFinding
}

func (p *patient) find(code Code, severity Severity, message, fix string, examples ...Example) {
	p.findings = append(p.findings, ShardFinding{Finding{code, severity, message, fix}, p.Place, examples})
}

func (w *ward) find(physical string, f Finding) {
	w.findings = append(w.findings, ShardFinding{Finding: f, Place: Place{Database: w.name, Physical: physical}})
}

func (w *ward) visit(ctx context.Context) {
	names, err := w.tables(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.find("", Finding{
				Unreachable, Error, "the database cannot be looked at: " + err.Error(),
				"see that it runs, that its address is right and that the user may read it",
			})
		}
		return
	}
	for _, p := range w.patients {
		w.examine(ctx, p)
	}
	w.strays(ctx, names)
	w.counters(ctx, names)
}

// within runs f on one connection, within the time for one table.
func (w *ward) within(ctx context.Context, f func(context.Context, session, catalog) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.config.Timeout)
	defer cancel()
	return withSession(ctx, w.db, func(s session) error {
		return inCatalog(ctx, s, func(c catalog) error { return f(ctx, s, c) })
	})
}

func (w *ward) tables(ctx context.Context) (names []string, err error) {
	err = w.within(ctx, func(ctx context.Context, _ session, c catalog) error {
		names, err = c.names(ctx)
		return err
	})
	return names, err
}

// examine looks at one physical table. A retry starts from nothing.
func (w *ward) examine(ctx context.Context, p *patient) {
	place := p.Place
	err := w.within(ctx, func(ctx context.Context, s session, c catalog) (err error) {
		p.Checkup, p.findings, p.shape, p.counter = Checkup{Place: place}, nil, shape{}, nil
		if p.facts, err = c.table(ctx, p.Physical); err != nil {
			return err
		}
		if p.shape, err = readShape(ctx, s, p.facts); err != nil || p.table == nil {
			return err
		}
		if err := w.numbering(ctx, s, p); err != nil {
			return err
		}
		if err := p.judgeKeys(ctx, s); err != nil {
			return err
		}
		if w.isChild(p) {
			p.keyColumns()
			return nil
		}
		return w.rows(ctx, s, p)
	})
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ErrNoTable):
		p.find(MissingTable, Error, "the table does not exist, or the user may not see it", "create it as in the other shards, or grant SELECT on it")
	case errors.Is(err, context.DeadlineExceeded):
		p.find(NotChecked, Warning, fmt.Sprintf("it could not be looked at within %v", w.config.Timeout), "give more time, or fewer rows")
	default:
		p.find(NotChecked, Error, "it cannot be looked at: "+err.Error(), "see that the user may read it, and look again")
	}
}

// isChild reports whether the rows of a table say nothing of their shard.
func (w *ward) isChild(p *patient) bool {
	return slices.ContainsFunc(w.config.Children, func(name string) bool { return strings.EqualFold(name, p.Table) })
}

var shardNumber = regexp.MustCompile(`^_?-?[0-9]+$`)

// strays finds tables that are called like a sharded table, or like a shard of
// it, and that the router does not know: rows in them are seen by nobody.
func (w *ward) strays(ctx context.Context, names []string) {
	slices.Sort(names)
	for _, name := range names {
		if slices.ContainsFunc(w.patients, func(p *patient) bool { return strings.EqualFold(p.Physical, name) }) {
			continue
		}
		for _, logical := range w.logical() {
			code, what := stray(logical, name)
			if code == "" || ctx.Err() != nil {
				continue
			}
			w.countStray(ctx, name, code, what)
		}
	}
}

// logical returns the names of the sharded tables that have shards here.
func (w *ward) logical() []string {
	var names []string
	for _, p := range w.patients {
		if p.table != nil {
			names = append(names, p.Table)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func stray(logical, name string) (Code, string) {
	switch {
	case strings.EqualFold(name, logical):
		return LogicalTable, "bears the name of the sharded table " + logical
	case len(name) > len(logical) && strings.EqualFold(name[:len(logical)], logical) && shardNumber.MatchString(name[len(logical):]):
		return StrayTable, "looks like a shard of " + logical + ", but the router has none of this name here"
	}
	return "", ""
}

func (w *ward) countStray(ctx context.Context, name string, code Code, what string) {
	var some bool
	err := w.within(ctx, func(ctx context.Context, s session, _ catalog) error {
		return s.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+s.Quote(name)+")").Scan(&some)
	})
	switch {
	case err != nil:
		w.find(name, Finding{NotChecked, Warning, "it " + what + " and cannot be read: " + err.Error(), "see that the user may read it, and look again"})
	case some:
		w.find(name, Finding{code, Error, "it " + what + ", and holds rows that no routed statement sees", "move those rows to where they belong, then drop it or give it another name"})
	default:
		w.find(name, Finding{code, Warning, "it " + what + "; it is empty", "drop it, so that a statement which slips through fails"})
	}
}
