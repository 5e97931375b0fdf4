// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
)

// numberAnew gives a table its renumbering. A table whose primary key refers to another
// table shares that table's.
func (all Tables) numberAnew(t *Table) error {
	owner := t
	for range all {
		up, refers := owner.reference(owner.Key)
		if !refers || up.to == owner {
			break
		}
		owner = up.to
	}
	if owner != t && !idmap.Keeps(t.Conf.IDs) && numberingText(t.Conf.IDs) != numberingText(owner.Conf.IDs) {
		return fmt.Errorf("%w: table %s: its primary key refers to %s, so it gets the same new ids (%s); leave out IDs", backend.ErrUnsupported, t.Conf.Name, owner.Conf.Name, numberingText(owner.Conf.IDs))
	}
	if idmap.Keeps(owner.Conf.IDs) {
		return nil
	}
	if owner.IDs == nil {
		owner.IDs = &idmap.Renumbering{By: owner.Conf.IDs, Of: &owner.Table, Number: owner.Number}
	}
	t.IDs = owner.IDs
	return nil
}

// Numbering describes how the table's ids change.
func (t *Table) Numbering() string {
	if t.IDs == nil {
		return idmap.Kept{}.Text()
	}
	return t.IDs.Text()
}

// RenumberingOf is how the values of a column change.
func (t *Table) RenumberingOf(column string) *idmap.Renumbering {
	if strings.EqualFold(column, t.Key) {
		return t.IDs
	}
	if r, ok := t.reference(column); ok {
		return r.to.IDs
	}
	return nil
}

// rewritten are the renumberings of the table's columns, in their order; nil when none
// changes.
func (t *Table) rewritten() []*idmap.Renumbering {
	all := make([]*idmap.Renumbering, len(t.Columns))
	some := false
	for i, c := range t.Columns {
		all[i] = t.RenumberingOf(c.Name)
		some = some || all[i] != nil
	}
	if !some {
		return nil
	}
	return all
}

// idColumns are the columns that hold ids of the job, which may become larger.
func (t *Table) idColumns() []string {
	all := []string{t.Key}
	for _, r := range t.references {
		if !strings.EqualFold(r.column, t.Key) {
			all = append(all, r.column)
		}
	}
	return all
}

// CheckIDs fails when an id that exists has no counterpart on the shards.
func (all Tables) CheckIDs(ctx context.Context, s *backend.Session) error {
	for _, t := range all {
		if err := t.checkEnds(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// checkEnds tries the lowest and the highest value of each column: if these have
// counterparts, all values between them have.
func (t *Table) checkEnds(ctx context.Context, s *backend.Session) error {
	for i, r := range t.Rewrites {
		if r == nil {
			continue
		}
		column := t.Columns[i].Name
		for _, end := range []string{"MIN", "MAX"} {
			id, err := s.Number(ctx, fmt.Sprintf("SELECT %s(%s) FROM %s", end, s.Database.Quote(column), s.Database.Quote(t.Name)))
			if err != nil {
				return fmt.Errorf("table %s, column %s: %w", t.Conf.Name, column, err)
			}
			if err := r.Accepts(id); err != nil {
				return fmt.Errorf("%w: table %s, column %s: %w", backend.ErrUnsupported, t.Conf.Name, column, err)
			}
		}
	}
	return nil
}

// HasMap reports whether the job has a map table.
func (all Tables) HasMap() bool {
	return slices.ContainsFunc(all, func(t *Table) bool { return t.IDs.IsDrawn() })
}

// numberingText describes a numbering without disclosing a key.
func numberingText(by idmap.Numbering) string {
	if by == nil {
		by = idmap.Kept{}
	}
	return by.Text()
}
