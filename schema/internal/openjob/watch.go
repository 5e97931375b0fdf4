// SPDX-License-Identifier: Apache-2.0

package openjob

import (
	"context"
	"slices"
	"strconv"

	"github.com/shardid/shardid/schema/internal/backend"
)

// Watches are triggers on tables outside of the job. They refuse changes that foreign keys
// would cascade into the job's tables, where no trigger would see them.
type Watches struct {
	Triggers []backend.Trigger

	prefix string // the names are this and a number
}

// WatchesOf are the watches of a job.
func WatchesOf(j *Job) Watches {
	w := Watches{prefix: "shardid_" + j.Name + "_watch"}
	var all []backend.KeyWatch
	for _, t := range j.Tables {
		for _, fk := range t.up {
			if !watched(j, fk) {
				continue
			}
			i := slices.IndexFunc(all, func(w backend.KeyWatch) bool { return w.Table == fk.Table })
			if i < 0 {
				i = len(all)
				all = append(all, backend.KeyWatch{Name: w.prefix + strconv.Itoa(i), Job: j.Name, Table: fk.Table})
			}
			all[i].Columns, all[i].Of = union(all[i].Columns, fk.Refers...), union(all[i].Of, t.Conf.Name)
		}
	}
	for _, of := range all {
		w.Triggers = append(w.Triggers, j.Source.KeyWatch(of))
	}
	return w
}

// watched reports whether a watch refuses all changes that a foreign key to a table outside
// of the job would cascade.
func watched(j *Job, fk relation) bool {
	return j.Source.Name() == "mysql" && fk.other == nil && fk.Updates && !fk.Deletes && fk.Unseen == ""
}

func union(all []string, more ...string) []string {
	for _, name := range more {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// Drop drops the triggers.
func (w Watches) Drop(ctx context.Context, s *backend.Session) error {
	return s.DropTriggersNamed(ctx, w.prefix, nil)
}

// Lost are the names of the missing triggers.
func (w Watches) Lost(ctx context.Context, s *backend.Session) ([]string, error) {
	return s.LostTriggers(ctx, w.prefix, w.Triggers)
}
