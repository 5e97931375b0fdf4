// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
)

// A runner on files keeps its connections, however long it stands still. When it goes on, the
// triggers and tables are those of the runner that has taken over.
func TestAFencedRunnerChangesNoDefinition(t *testing.T) {
	t.Parallel()
	back := func(ctx context.Context, j *migrate.Job) error {
		_, err := j.Rollback(ctx, longPause)
		return err
	}
	for _, asleep := range []struct {
		in   func(context.Context, *migrate.Job) error
		step string
	}{
		{back, migrate.StepSealed},
		{back, migrate.StepReinstated},
	} {
		s, _ := switched(t, "id")
		observe, reached, goOn := blockAt(asleep.step, 0)
		zombie := s.job(t, "id", func(c *migrate.Config) { c.Observe = observe })
		ended := make(chan error, 1)
		go func() { ended <- asleep.in(t.Context(), zombie) }()
		<-reached
		next := s.job(t, "id")
		if err := back(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		mustCutover(t, next)
		want := s.definitions(t)
		goOn()
		if err := <-ended; !errors.Is(err, migrate.ErrFenced) {
			t.Errorf("%s: the zombie ended with %v", asleep.step, err)
		}
		if got := s.definitions(t); !slices.Equal(got, want) {
			t.Errorf("%s: the zombie left %q\nof %q", asleep.step, got, want)
		}
	}
}

// definitions names all tables and triggers.
func (s *shop) definitions(t *testing.T) []string {
	t.Helper()
	all := make([]string, 3)
	for i, db := range []*sql.DB{s.source, s.shards["a"], s.shards["b"]} {
		err := db.QueryRowContext(t.Context(), "SELECT group_concat(name, ' ' ORDER BY name) FROM sqlite_schema").Scan(&all[i])
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
