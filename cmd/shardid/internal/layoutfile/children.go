// SPDX-License-Identifier: Apache-2.0

package layoutfile

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

// Child returns the table of this name if it is one.
func (l File) Child(name string) (Table, bool) {
	for _, t := range l.Tables {
		if t.Via != "" && strings.EqualFold(t.Name, name) {
			return t, true
		}
	}
	return Table{}, false
}

// Unplaced says why the rows cannot be placed by themselves.
func (t Table) Unplaced() string {
	return fmt.Sprintf(`its rows lie where those do that its %s refers to, and cannot be placed by themselves ("via")`, t.Via)
}

// Placing is the way out.
func (t Table) Placing() string {
	return fmt.Sprintf(`leave "via" out where the table has the sharding key itself, or add that to it; where its parent is placed by its id, say "key": %q in place of "via"`, t.Via)
}

// RefuseChildren returns an error where there are children: no system can be told of a column that is not there. A slot that
// the table stores is another matter.
func (l File) RefuseChildren(system string) error {
	var errs []error
	for _, t := range l.Tables {
		if t.Via == "" || system == "vitess" && l.Vitess.Buckets[t.Name] != "" {
			continue
		}
		errs = append(errs, input.Wrap(&export.RefusedError{System: system, Table: t.Name, Reason: t.Unplaced(), Way: t.Placing()}))
	}
	return errors.Join(errs...)
}

// WithoutParents are the file's tables, each with columns of its own only: the rule
// says nothing of what they hold.
func (l File) WithoutParents() File {
	l.Tables = slices.Clone(l.Tables)
	for i, t := range l.Tables {
		if t.Via != "" {
			l.Tables[i].Key, l.Tables[i].Also = t.Via, nil
		}
	}
	return l
}

// Children returns the names of the tables with a "via".
func (l File) Children() []string {
	var names []string
	for _, t := range l.Tables {
		if t.Via != "" {
			names = append(names, t.Name)
		}
	}
	return names
}

// NoteChildren says in a diagnosis why the rows of children were not looked at.
func (l File) NoteChildren(d *schema.Diagnosis) {
	for _, c := range d.Targets {
		if t, is := l.Child(c.Table); is {
			d.Findings = append(d.Findings, schema.ShardFinding{
				Finding: schema.Finding{Code: schema.NotChecked, Severity: schema.Info, Message: t.Unplaced() + "; they were not looked at", Fix: t.Placing()},
				Place:   c.Place,
			})
		}
	}
}
