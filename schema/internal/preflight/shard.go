// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// shardProbe checks the tables of a database with shards.
type shardProbe struct{ probe }

// shard checks one database with shards.
func (i *inspection) shard(ctx context.Context, name string) {
	shard, err := backend.Open(ctx, name, backend.ShardFenceTable, i.cfg.Shards[name])
	if err == nil {
		defer shard.Close()
		err = backend.CheckKinds(i.from, shard)
	}
	if err == nil {
		err = shard.Once(ctx, func(s *backend.Session) error { return shardProbe{probe{i, s, backend.Table{}}}.targets(ctx) })
	}
	if err != nil {
		i.found = append(i.found, Finding{Unreachable, Block, name, "", err.Error(), "check that it runs, and the user's rights", err})
	}
}

// targets finds rows that exist already in the tables of the shards.
func (p shardProbe) targets(ctx context.Context) error {
	for _, t := range p.cfg.Tables {
		missing := false
		for _, target := range t.Map.Targets() {
			if target.DB != p.Database.Label {
				continue
			}
			exists, err := p.target(ctx, t, target.Table)
			if err != nil {
				return err
			}
			missing = missing || !exists
		}
		if !missing || p.Database.Name() == "sqlite" {
			continue
		}
		p.shape.Name = t.Name
		for _, f := range p.computed[t.Name] {
			p.add(f.Code, f.Severity, f.Message, f.Fix)
		}
		makes := p.strict
		if p.Database.Name() == "postgres" {
			makes = p.postgresMakes
		}
		if err := makes(ctx, t); err != nil {
			return err
		}
	}
	p.shape.Name = ""
	switch p.Database.Name() {
	case "sqlite":
		return serverProbe(p).sqliteDatabase(ctx)
	case "postgres":
		return serverProbe(p).postgresShard(ctx)
	}
	return serverProbe(p).mysqlShard(ctx)
}

// target checks one table of a shard, and reports whether the table exists and is the job's
// own.
func (p shardProbe) target(ctx context.Context, t openjob.TableConfig, name string) (exists bool, err error) {
	p.shape.Name = name
	if p.has(name) {
		if is, err := p.Place(ctx); err != nil || is == p.home {
			p.add(SameTable, Block, "the shard is the table of the source itself", "give the shards in the source's database names of their own")
			return true, err
		}
	}
	ours, err := p.owned(ctx, name)
	if err == nil && ours {
		err = p.grants(ctx, t.Name, name)
	}
	if err != nil || ours {
		return true, err
	}
	exists, err = p.Database.Exists(ctx, p.Session, name)
	if err == nil && !exists && p.Database.Name() != "postgres" { // postgresMakes creates it for a trial
		err = p.unlike(ctx, t)
	}
	if err == nil && !exists {
		return false, p.sealedFits(ctx, t, name)
	}
	if err != nil {
		return exists, err
	}
	if err := p.keyColumns(ctx, t); err != nil {
		return true, err
	}
	rows, err := p.Number(ctx, "SELECT COUNT(*) FROM (SELECT 1 FROM "+p.Database.Quote(name)+" LIMIT 1) AS one")
	if err == nil && rows > 0 {
		p.add(NotEmpty, Block, "the table exists and has rows that no job has written", "drop it, or give the job tables of its own: it begins with empty ones")
	}
	if err != nil {
		return true, err
	}
	return true, p.fits(ctx, t, name)
}

// sealedFits checks a table that a rollback of an earlier job has closed: a run uses it again.
func (p shardProbe) sealedFits(ctx context.Context, t openjob.TableConfig, name string) error {
	p.shape.Name = backend.Sealed(name)
	exists, err := p.Database.Exists(ctx, p.Session, p.shape.Name)
	if err != nil || !exists {
		return err
	}
	return p.fits(ctx, t, p.shape.Name)
}

// fits compares a table that somebody has made with what the rows need, as a run does.
func (p shardProbe) fits(ctx context.Context, t openjob.TableConfig, name string) error {
	of, known := p.shapes[t.Name]
	if !known { // other findings say why
		return nil
	}
	found, err := p.Database.Describe(ctx, p.Session, name)
	var why, fix string
	switch {
	case errors.Is(err, backend.ErrUnsupported):
		why, fix = plain(err), "change it"
	case err != nil:
		return err
	case len(found.Parents) > 0:
		why, fix = "it has foreign keys, which would delete rows when others are rewritten", "drop them, and add them after finalize"
	default:
		why, fix = openjob.Misfit(of, found)
	}
	if why != "" {
		p.add(Misfit, Block, why, "drop this table, so that the job creates it, or "+fix)
	}
	return nil
}

// owned reports whether the table is a job's. If it is another job's, that is a finding.
func (p shardProbe) owned(ctx context.Context, name string) (bool, error) {
	there, err := p.Database.Exists(ctx, p.Session, backend.OwnerTable)
	if err != nil || !there {
		return false, err
	}
	job, mark, err := lead.OwnerOf(ctx, p.Session, name)
	if err != nil || job == "" {
		return false, err
	}
	if job == p.cfg.Name && mark == p.mark {
		return true, nil
	}
	if job == p.cfg.Name {
		job += " of another source"
	}
	p.add(OtherJob, Block, "the table belongs to job "+job, "give this job tables of its own, or abort that one; when it is finalized or its source is gone for good, and nobody needs the rows, drop the table and DELETE FROM "+
		backend.OwnerTable+" WHERE name = '"+name+"' there")
	return true, nil
}
