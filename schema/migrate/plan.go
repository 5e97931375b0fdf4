// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// Plan is what a job will do, for people who have to approve it.
type Plan struct {
	Job    string         `json:"job"`
	Tables []PlannedTable `json:"tables"`
	Bytes  int64          `json:"bytes"` // of data and indexes, as the source estimates
	// Seconds is a rough estimate of how long the copy takes on a common server without
	// throttling.
	Seconds int64 `json:"seconds"`
	// Digest changes with the definitions of the source's tables, the rule, the change of ids
	// and the targets, and with nothing else: an approved plan is valid as long as its digest
	// is the same.
	Digest string `json:"digest"`
	// Before are statements to run by hand before Run: they drop the foreign keys of other
	// tables to those of the job, which block it. AfterAbort create these keys again.
	Before     []Statement `json:"before,omitempty"`
	AfterAbort []Statement `json:"after_abort,omitempty"`
	// Statements install the job, in this order.
	Statements []Statement `json:"statements"`
	// AtSwitch are statements that Cutover runs before it switches: they create the tables'
	// own triggers on the shards.
	AtSwitch []Statement `json:"at_switch,omitempty"`
}

// PlannedTable is one table of a plan.
type PlannedTable struct {
	Name    string   `json:"name"`
	Key     string   `json:"key"`           // the primary key
	ShardBy string   `json:"shard_by"`      // the column with the sharding key
	Via     string   `json:"via,omitempty"` // the column that leads to the parent with ShardBy
	IDs     string   `json:"ids"`           // how ids change
	Rows    int64    `json:"rows"`          // as the source estimates
	Targets []string `json:"targets"`       // databases and physical tables
}

// Statement is SQL for one of the databases.
type Statement struct {
	Database string `json:"database"` // "source" or the name of a shard's
	SQL      string `json:"sql"`
}

// Rows and bytes that a common server copies in a second.
const (
	copiedRows  = 100_000
	copiedBytes = 25_000_000
)

// Plan returns what the job will do, and changes nothing. Existing targets are not in its
// statements; Run checks that they are empty.
func (j *Job) Plan(ctx context.Context) (Plan, error) {
	w, err := j.open(ctx)
	if err != nil {
		return Plan{}, fmt.Errorf("migrate: job %s: plan: %w", j.cfg.Name, err)
	}
	defer w.Close()
	p := &planner{openJob: w, plan: Plan{Job: j.cfg.Name}, sum: sha256.New()}
	if err := p.run(ctx); err != nil {
		return Plan{}, fmt.Errorf("migrate: job %s: plan: %w", j.cfg.Name, err)
	}
	return p.plan, nil
}

type planner struct {
	*openJob

	plan Plan
	sum  hash.Hash
}

func (p *planner) run(ctx context.Context) error {
	p.add(p.Source, p.SourceTables()...)
	for _, side := range p.Shards {
		p.add(side, side.ShardTables(p.BackTable())...)
	}
	if err := p.Source.Do(ctx, func(s *backend.Session) error { return p.Tables.CheckIDs(ctx, s) }); err != nil {
		return err
	}
	for _, t := range p.Tables {
		if err := p.table(ctx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Conf.Name, err)
		}
	}
	for _, t := range p.Tables {
		for _, trigger := range p.Source.Capture(p.Capture(t)) {
			p.add(p.Source, trigger.Create)
		}
	}
	for _, watch := range openjob.WatchesOf(p.State.Job).Triggers {
		p.add(p.Source, watch.Create)
	}
	p.constraints()
	p.ownTriggers()
	var rows int64
	for _, t := range p.plan.Tables {
		rows += t.Rows
	}
	p.plan.Seconds = 1 + max(rows/copiedRows, p.plan.Bytes/copiedBytes)
	p.plan.Digest = hex.EncodeToString(p.sum.Sum(nil))
	return nil
}

// constraints plans the foreign keys of other tables. Keys of another MySQL database are
// left to the administrator of that database.
func (p *planner) constraints() {
	if p.Source.Name() == "sqlite" {
		return
	}
	for _, t := range p.Tables {
		for _, fk := range t.Outside() {
			if p.Source.Name() == "mysql" && strings.Contains(fk.Table, ".") {
				continue
			}
			drop, add := fk.Statements(fk.Table, t.Conf.Name)
			p.plan.Before = append(p.plan.Before, Statement{p.Source.Label, drop})
			p.plan.AfterAbort = append(p.plan.AfterAbort, Statement{p.Source.Label, add})
		}
	}
}

func (p *planner) ownTriggers() {
	for _, t := range p.Tables {
		for i, to := range t.Targets {
			for _, trigger := range p.Tables.OwnTriggers(t, i) {
				p.plan.AtSwitch = append(p.plan.AtSwitch, Statement{to.Database.Label, trigger.Create})
			}
		}
	}
}

func (p *planner) add(on *backend.Database, statements ...string) {
	for _, text := range statements {
		p.plan.Statements = append(p.plan.Statements, Statement{on.Label, text})
	}
}

func (p *planner) table(ctx context.Context, t *openjob.Table) error {
	planned := PlannedTable{Name: t.Conf.Name, Key: t.Key, ShardBy: t.Conf.Key, Via: t.Conf.Via, IDs: t.Numbering()}
	for _, to := range t.Targets {
		planned.Targets = append(planned.Targets, to.Database.Label+"/"+to.Name)
		if err := p.target(ctx, t, to); err != nil {
			return err
		}
	}
	err := p.Source.Do(ctx, func(s *backend.Session) error {
		rows, bytes, err := openjob.Estimate(ctx, s, t.Name)
		planned.Rows = rows
		p.plan.Bytes += bytes
		return err
	})
	p.plan.Tables = append(p.plan.Tables, planned)
	_, _ = fmt.Fprintf(p.sum, "%s %q\n", t.Conf.Name, t.Setup())
	return err
}

// target adds the statements that create a physical table. The digest does not depend on
// which tables exist.
func (p *planner) target(ctx context.Context, t *openjob.Table, to *openjob.Target) error {
	definition, err := p.definition(ctx, t, to.Name)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(p.sum, "%s %q\n", to.Database.Label, definition) // a hash takes everything
	exists := false
	err = to.Database.Do(ctx, func(s *backend.Session) (err error) {
		exists, err = s.Database.Exists(ctx, s, to.Present())
		return err
	})
	if err != nil || exists {
		return err
	}
	served, err := p.mayHaveServed(ctx, t)
	if err == nil && served {
		definition, err = p.definition(ctx, t, backend.Sealed(to.Name))
	}
	p.add(to.Database, definition...)
	return err
}

func (p *planner) definition(ctx context.Context, t *openjob.Table, name string) (definition []string, err error) {
	err = p.Source.Do(ctx, func(s *backend.Session) error {
		definition, err = s.Database.TargetDefinition(ctx, s, t.Table, name)
		return err
	})
	return definition, err
}
