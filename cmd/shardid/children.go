package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/schema"
	"github.com/shardid/shardid/sharding/export"
)

// A child is a table with a "via": its rows lie where their parents do, and which
// shard that is they do not say themselves.

// child returns the table of this name if it is one.
func (l layoutFile) child(name string) (tableEntry, bool) {
	for _, t := range l.Tables {
		if t.Via != "" && strings.EqualFold(t.Name, name) {
			return t, true
		}
	}
	return tableEntry{}, false
}

// unplaced says why the rows cannot be placed by themselves.
func (t tableEntry) unplaced() string {
	return fmt.Sprintf(`its rows lie where those do that its %s refers to, and cannot be placed by themselves ("via")`, t.Via)
}

// placing is the way out.
func (t tableEntry) placing() string {
	return fmt.Sprintf(`leave "via" out where the table has the sharding key itself, or add that to it; where its parent is placed by its id, say "key": %q in place of "via"`, t.Via)
}

// refuseChildren: no system can be told of a column that is not there. A slot that
// the table stores is another matter.
func (l layoutFile) refuseChildren(system string) error {
	var errs []error
	for _, t := range l.Tables {
		if t.Via == "" || system == "vitess" && l.Vitess.Buckets[t.Name] != "" {
			continue
		}
		errs = append(errs, input.Wrap(&export.RefusedError{System: system, Table: t.Name, Reason: t.unplaced(), Way: t.placing()}))
	}
	return errors.Join(errs...)
}

// withoutParents are the file's tables, each with columns of its own only: the rule
// says nothing of what they hold.
func (l layoutFile) withoutParents() layoutFile {
	l.Tables = slices.Clone(l.Tables)
	for i, t := range l.Tables {
		if t.Via != "" {
			l.Tables[i].Key, l.Tables[i].Also = t.Via, nil
		}
	}
	return l
}

// ofRows are the codes of what a rule says of rows.
var ofRows = []schema.Code{
	schema.MisplacedRows, schema.UnplaceableRows, schema.PartlyChecked, schema.Collation, schema.WrongNumbering, schema.EpochUnarmed,
}

// forgetChildren takes what a diagnosis says of the rows of children out of it, and
// says so.
func (l layoutFile) forgetChildren(d *schema.Diagnosis) {
	d.Findings = slices.DeleteFunc(d.Findings, func(f schema.ShardFinding) bool {
		_, is := l.child(f.Table)
		return is && slices.Contains(ofRows, f.Code)
	})
	for i, c := range d.Targets {
		t, is := l.child(c.Table)
		if !is {
			continue
		}
		d.Targets[i] = schema.Checkup{Place: c.Place}
		d.Findings = append(d.Findings, schema.ShardFinding{
			Finding: schema.Finding{Code: schema.NotChecked, Severity: schema.Info, Message: t.unplaced() + "; they were not looked at", Fix: t.placing()},
			Place:   c.Place,
		})
	}
}
