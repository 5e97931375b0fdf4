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

// databaseScan checks one database and its physical tables. One goroutine runs it.
type databaseScan struct {
	name     string
	db       *sql.DB
	config   DoctorConfig
	tables   []*tableScan
	findings []ShardFinding
}

// tableScan checks one physical table.
type tableScan struct {
	Checkup

	table    *sharding.Table // nil for broadcast tables
	facts    table
	shape    shape             // zero while the table could not be read
	counter  *sharding.Counter // of a table that numbers rows in epochs
	findings []ShardFinding
}

func (scan *tableScan) find(code Code, severity Severity, message, fix string, examples ...Example) {
	scan.findings = append(scan.findings, ShardFinding{Finding{code, severity, message, fix}, scan.Place, examples})
}

func (d *databaseScan) find(physical string, f Finding) {
	d.findings = append(d.findings, ShardFinding{Finding: f, Place: Place{Database: d.name, Physical: physical}})
}

// run checks the tables, and calls done after each.
func (d *databaseScan) run(ctx context.Context, done func()) {
	names, err := d.tableNames(ctx)
	if err != nil {
		if ctx.Err() == nil {
			d.find("", Finding{
				Unreachable, Error, "the database cannot be looked at: " + err.Error(),
				"see that it runs, that its address is right and that the user may read it",
			})
		}
		return
	}
	for _, scan := range d.tables {
		d.examine(ctx, scan)
		done()
	}
	d.strays(ctx, names)
	d.counters(ctx, names)
}

// within runs f on one connection, limited to the time for one table.
func (d *databaseScan) within(ctx context.Context, f func(context.Context, session, catalog) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()
	return withSession(ctx, d.db, func(s session) error {
		return inCatalog(ctx, s, func(c catalog) error { return f(ctx, s, c) })
	})
}

func (d *databaseScan) tableNames(ctx context.Context) (names []string, err error) {
	err = d.within(ctx, func(ctx context.Context, _ session, c catalog) error {
		names, err = c.names(ctx)
		return err
	})
	return names, err
}

// examine checks one physical table. Each attempt starts with an empty result.
func (d *databaseScan) examine(ctx context.Context, scan *tableScan) {
	place := scan.Place
	err := d.within(ctx, func(ctx context.Context, s session, c catalog) (err error) {
		scan.Checkup, scan.findings, scan.shape, scan.counter = Checkup{Place: place}, nil, shape{}, nil
		if scan.facts, err = c.table(ctx, scan.Physical); err != nil {
			return err
		}
		if scan.shape, err = readShape(ctx, s, scan.facts); err != nil || scan.table == nil {
			return err
		}
		if err := d.numbering(ctx, s, scan); err != nil {
			return err
		}
		if err := scan.checkKeys(ctx, s); err != nil {
			return err
		}
		if err := d.parents(ctx, s, c, scan); err != nil {
			return err
		}
		if d.isChild(scan) {
			scan.keyColumns()
			return nil
		}
		if err := scan.checkUnique(ctx, s); err != nil {
			return err
		}
		return d.rows(ctx, s, scan)
	})
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ErrNoTable):
		scan.find(MissingTable, Error, "the table does not exist, or the user may not see it", "create it as in the other shards, or grant SELECT on it")
	case errors.Is(err, context.DeadlineExceeded):
		scan.find(NotChecked, Warning, fmt.Sprintf("it could not be looked at within %v", d.config.Timeout), "give more time, or fewer rows")
	default:
		scan.find(NotChecked, Error, "it cannot be looked at: "+err.Error(), "see that the user may read it, and look again")
	}
}

// isChild reports whether the rows of a table carry no sharding key.
func (d *databaseScan) isChild(scan *tableScan) bool {
	return slices.ContainsFunc(d.config.Children, func(name string) bool { return strings.EqualFold(name, scan.Table) })
}

var shardNumber = regexp.MustCompile(`^_?-?[0-9]+$`)

// strays finds tables that have the name of a sharded table or of one of its shards, and
// that the router does not know. No routed statement sees rows in them.
func (d *databaseScan) strays(ctx context.Context, names []string) {
	slices.Sort(names)
	for _, name := range names {
		if slices.ContainsFunc(d.tables, func(scan *tableScan) bool { return strings.EqualFold(scan.Physical, name) }) {
			continue
		}
		for _, logical := range d.logical() {
			code, what := stray(logical, name)
			if code == "" || ctx.Err() != nil {
				continue
			}
			d.countStray(ctx, name, code, what)
		}
	}
}

// logical returns the names of the sharded tables that have shards here.
func (d *databaseScan) logical() []string {
	var names []string
	for _, scan := range d.tables {
		if scan.table != nil {
			names = append(names, scan.Table)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func stray(logical, name string) (Code, string) {
	switch {
	case strings.EqualFold(name, logical):
		return LogicalTable, "has the name of the sharded table " + logical
	case len(name) > len(logical) && strings.EqualFold(name[:len(logical)], logical) && shardNumber.MatchString(name[len(logical):]):
		return StrayTable, "looks like a shard of " + logical + ", but the router has none of this name here"
	}
	return "", ""
}

func (d *databaseScan) countStray(ctx context.Context, name string, code Code, what string) {
	var some bool
	err := d.within(ctx, func(ctx context.Context, s session, _ catalog) error {
		return s.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+s.Quote(name)+")").Scan(&some)
	})
	switch {
	case err != nil:
		d.find(name, Finding{NotChecked, Warning, "it " + what + " and cannot be read: " + err.Error(), "see that the user may read it, and look again"})
	case some:
		d.find(name, Finding{code, Error, "it " + what + ", and holds rows that no routed statement sees", "move those rows to where they belong, then drop it or give it another name"})
	default:
		d.find(name, Finding{code, Warning, "it " + what + "; it is empty", "drop it, so that a statement which slips through fails"})
	}
}
