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

// A child is a table with a "via": its rows lie in the shards of their parents, and have no
// sharding key.

// Child returns the table of this name if it is one.
func (l File) Child(name string) (Table, bool) {
	for _, t := range l.Tables {
		if t.Via != "" && strings.EqualFold(t.Name, name) {
			return t, true
		}
	}
	return Table{}, false
}

// Unplaced says why rows of the table have no shard of their own.
func (t Table) Unplaced() string {
	return fmt.Sprintf(`its rows lie in the shards of the rows that its %s refers to, and have no sharding key themselves ("via")`, t.Via)
}

// Placing says how to give the table a sharding key.
func (t Table) Placing() string {
	return fmt.Sprintf(`leave "via" out if the table has the sharding key itself, or add that column; if its parent is placed by its id, write "key": %q instead of "via"`, t.Via)
}

// RefuseChildren returns an error where there are children: a system cannot place rows by a
// column that the table does not have. Vitess can place them by a slot that the table
// stores.
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

// WithoutParents are the file's tables without "via". Each then has only its own columns,
// and the rule says nothing about their values.
func (l File) WithoutParents() File {
	l.Tables = slices.Clone(l.Tables)
	for i, t := range l.Tables {
		if t.Via != "" {
			l.Tables[i].Key, l.Tables[i].Also, l.Tables[i].Parents = t.Via, nil, nil
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

// NoteChildren adds to a diagnosis why the rows of children were not checked.
func (l File) NoteChildren(d *schema.Diagnosis) {
	for _, c := range d.Targets {
		if t, is := l.Child(c.Table); is {
			d.Findings = append(d.Findings, schema.ShardFinding{
				Finding: schema.Finding{Code: schema.NotChecked, Severity: schema.Info, Message: t.Unplaced() + "; they were not checked", Fix: t.Placing()},
				Place:   c.Place,
			})
		}
	}
}
