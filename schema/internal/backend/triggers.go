// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// MakeTriggers creates those triggers that are missing or different: a run may have been
// killed while it created them, and a new table of the same name has none.
func (c *Session) MakeTriggers(ctx context.Context, all []Trigger) error {
	missing, err := c.missingTriggers(ctx, all)
	if err != nil {
		return err
	}
	return c.replaceTriggers(ctx, missing)
}

// MakeTriggersUnderWriters creates triggers on a table that others write to.
func (c *Session) MakeTriggersUnderWriters(ctx context.Context, all []Trigger) error {
	missing, err := c.missingTriggers(ctx, all)
	if err != nil || len(missing) == 0 {
		return err
	}
	return c.Database.withoutWriters(ctx, c, missing[0].table, func() error { return c.replaceTriggers(ctx, missing) })
}

// missingTriggers reads each table first: that waits for a statement of a runner that has died, which
// the server still executes and which may drop triggers.
func (c *Session) missingTriggers(ctx context.Context, all []Trigger) ([]Trigger, error) {
	var missing []Trigger
	for i, t := range all {
		if i == 0 || t.table != all[i-1].table {
			if _, err := c.List(ctx, "SELECT 1 FROM "+c.Database.Quote(t.table)+" LIMIT 0"); err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
		}
		there, err := c.Database.hasTrigger(ctx, c, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if !there {
			missing = append(missing, t)
		}
	}
	return missing, nil
}

func (c *Session) replaceTriggers(ctx context.Context, all []Trigger) error {
	if err := c.DropTriggers(ctx, all); err != nil {
		return err
	}
	for _, t := range all {
		if err := c.createTrigger(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// createTrigger sets the trigger's sql_mode, which a server stores with the trigger.
func (c *Session) createTrigger(ctx context.Context, t Trigger) error {
	if t.mode == "" {
		return c.Exec(ctx, t.Create)
	}
	return c.ExecAll(ctx, []string{"SET SESSION sql_mode = '" + t.mode + "'", t.Create, "SET SESSION sql_mode = '" + mysqlSettings["sql_mode"] + "'"})
}

// LostTriggers returns the names of the missing triggers. All triggers must have the
// prefix.
func (c *Session) LostTriggers(ctx context.Context, prefix string, all []Trigger) (lost []string, err error) {
	names, err := Triggers(ctx, c, prefix)
	if err != nil {
		return nil, err
	}
	return names.Lack(ctx, c, all)
}

// Names are the names of triggers that a database has.
type Names []string

// Triggers returns the names of the triggers that have the prefix.
func Triggers(ctx context.Context, c *Session, prefix string) (Names, error) {
	return c.Database.triggers(ctx, c, prefix)
}

// Lack returns the names of those triggers that are missing. It fails when the user may not see them.
func (has Names) Lack(ctx context.Context, c *Session, all []Trigger) (lost []string, err error) {
	for _, t := range all {
		if slices.ContainsFunc(has, func(name string) bool { return strings.EqualFold(name, t.name) }) {
			continue
		}
		if err := c.Database.mayShow(ctx, c, t.name); err != nil {
			return nil, err
		}
		lost = append(lost, t.name)
	}
	return lost, nil
}

// DropTriggersNamed drops the triggers whose names are the prefix and an event, except
// those in stay. Others may be using their table.
func (c *Session) DropTriggersNamed(ctx context.Context, prefix string, stay []Trigger) error {
	names, err := c.Database.triggers(ctx, c, prefix)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.Contains(name[len(prefix):], "_") || // belongs to a job whose name has this prefix
			slices.ContainsFunc(stay, func(t Trigger) bool { return strings.EqualFold(t.name, name) })
	})
	if len(names) == 0 {
		return nil
	}
	return c.Database.limitingWaits(ctx, c, func() error {
		for _, name := range names {
			if err := c.Exec(ctx, c.Database.dropTrigger(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropTriggers drops the triggers that exist.
func (c *Session) DropTriggers(ctx context.Context, all []Trigger) error {
	for _, t := range all {
		if err := c.Exec(ctx, c.Database.dropTrigger(t.name)); err != nil {
			return err
		}
	}
	return nil
}
