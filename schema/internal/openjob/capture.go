// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Edges are foreign keys by which the database would change retired tables, or refuse rows
// because of them.
func (j *Job) Edges() []string {
	var found []string
	for _, t := range j.Tables {
		for _, fk := range t.Outside() {
			found = append(found, fmt.Sprintf("table %s has a foreign key to %s; take it into the job, or drop the key", fk.Table, t.Name))
		}
		for _, fk := range t.up {
			if fk.Deletes && fk.other == t && j.Source.Name() == "mysql" { // which refuses what would be carried on to the same table
				found = append(found, fmt.Sprintf("the foreign key of %s to itself changes rows that no trigger sees; drop it", t.Name))
			}
			if fk.other == nil && fk.Cascades() && j.Source.Name() != "postgres" && !watched(j, fk) {
				found = append(found, fmt.Sprintf("the foreign key of %s to %s changes rows of %[1]s by itself; take %[2]s into the job, or drop the key", t.Name, fk.Table))
			}
		}
	}
	return found
}

// Capture describes the triggers that note the changes of a table of the source.
func (j *Job) Capture(t *Table) backend.Capture {
	return backend.Capture{
		Below: j.descents(t),
		Table: t.Name, Log: j.LogTable(), Number: t.Number, Key: t.Key, Uniques: t.Uniques,
		TriggerName: func(event string) string { return j.TriggerName("s", t.Number, event) },
	}
}

// descents are the tables whose rows have to be checked when a row of the table changes:
// rows that the database changes along with it, and rows that lie in its shard.
func (j *Job) descents(t *Table) []backend.Dependent {
	all := j.below(t, nil)
	for _, d := range j.RoutedBelow(t) {
		same := func(other backend.Dependent) bool {
			return other.Number == d.Number && slices.EqualFunc(other.Path, d.Path, backend.Link.Is)
		}
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Watch, all[i].Routed = d.Watch, true
		} else {
			all = append(all, d)
		}
	}
	return all
}

// below finds the tables whose rows foreign keys change along with a row of the table.
func (j *Job) below(t *Table, path []backend.Link) []backend.Dependent {
	var all []backend.Dependent
	for _, fk := range t.down {
		child := fk.other
		if !fk.Cascades() || child == nil || child == t {
			continue
		}
		refers := make([]string, len(fk.Refers))
		for i, column := range fk.Refers {
			refers[i] = cmp.Or(column, t.Key)
		}
		d := backend.Dependent{Number: child.Number, Key: child.Key, Path: append([]backend.Link{{Child: j.bodyName(child), Columns: fk.Columns, Refers: refers}}, path...)}
		d.Watch = d.Top().Refers
		all = append(all, d)
		if len(d.Path) < len(j.Tables) {
			all = append(all, j.below(child, d.Path)...)
		}
	}
	return all
}

// BackCapture describes the triggers that note the changes of a shard after the switch.
func (j *Job) BackCapture(t *Table, to int) backend.Capture {
	return backend.Capture{
		Table: t.Targets[to].Present(), Log: j.BackTable(), Number: t.Number, Key: t.Key, Uniques: t.Uniques,
		TriggerName: func(event string) string { return j.TriggerName(fmt.Sprintf("b%d_", t.Number), to, event) },
	}
}

// BackTriggers is the prefix of the names of all triggers of BackCapture.
func BackTriggers(j *Job) string { return "shardid_" + j.Name + "_b" }

// MakeBackCapture creates the triggers of a shard that note its changes, and those that the source's
// table has by itself.
func MakeBackCapture(ctx context.Context, s *backend.Session, j *Job, t *Table, to int) error {
	if err := s.MakeTriggers(ctx, j.Tables.OwnTriggers(t, to)); err != nil {
		return err
	}
	return s.MakeTriggers(ctx, s.Database.Capture(j.BackCapture(t, to)))
}

// RoutedBelow finds the tables whose rows move when a row of t changes, and the columns of
// t on which their place depends.
func (j *Job) RoutedBelow(t *Table) []backend.Dependent {
	var all []backend.Dependent
	for _, child := range j.Tables {
		for i, up := range child.route.hops {
			if up.to != t {
				continue
			}
			d := backend.Dependent{Number: child.Number, Key: child.Key, Path: j.links(child, i+1), Watch: []string{t.Key, child.route.column}, Routed: true}
			if i+1 < len(child.route.hops) {
				d.Watch[1] = child.route.hops[i+1].column
			}
			all = append(all, d)
		}
	}
	return all
}

// links are the first n foreign keys of a table's route.
func (j *Job) links(t *Table, n int) []backend.Link {
	path := make([]backend.Link, n)
	at := t
	for i, up := range t.route.hops[:n] {
		path[i] = backend.Link{Child: j.bodyName(at), Columns: []string{up.column}, Refers: []string{up.to.Key}}
		at = up.to
	}
	return path
}

// bodyName is the name of a table in the body of a trigger: MySQL looks names up when the
// trigger runs, SQLite updates them at a rename.
func (j *Job) bodyName(t *Table) string {
	if j.Source.Name() == "sqlite" {
		return t.Name
	}
	return t.Conf.Name
}

// DropCaptureOf drops the triggers that note changes of a table. It goes by the existing
// triggers, as those that the table would get now depend on its present foreign keys.
func (j *Job) DropCaptureOf(ctx context.Context, s *backend.Session, t *Table) error {
	return s.DropTriggersNamed(ctx, j.TriggerName("s", t.Number, ""), s.Database.Barrier(j.Capture(t)))
}

// MakeCapture creates the triggers on the source's tables, and on tables that they refer
// to.
func MakeCapture(ctx context.Context, j *Job, s *backend.Session) error {
	for _, t := range j.Tables {
		err := s.MakeTriggersUnderWriters(ctx, s.Database.Capture(j.Capture(t)))
		if err != nil && s.Database.MayPass(err) {
			j.Observe(StepBlocked, t, 0)
		}
		if err != nil {
			return fmt.Errorf("triggers on table %s: %w", t.Name, err)
		}
	}
	for _, watch := range WatchesOf(j).Triggers {
		if err := s.MakeTriggersUnderWriters(ctx, []backend.Trigger{watch}); err != nil {
			return fmt.Errorf("a trigger on a table that foreign keys refer to: %w", err)
		}
	}
	return nil
}

// DropCapture drops the triggers that note changes of the source's tables.
func DropCapture(ctx context.Context, j *Job, s *backend.Session) error {
	for _, t := range j.Tables {
		if err := j.DropCaptureOf(ctx, s, t); err != nil {
			return err
		}
	}
	return WatchesOf(j).Drop(ctx, s)
}
