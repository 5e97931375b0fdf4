// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/schema/migrate"
)

func progress(t *testing.T, job *migrate.Job) migrate.Progress {
	t.Helper()
	p, err := job.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProgressFollowsAJob(t *testing.T) {
	s := newShop(t, 200)
	if p := progress(t, s.job(t, "id")); p.Phase != migrate.PhaseNone || p.Copied() != 0 || p.Tables[0].Rows != 200 {
		t.Errorf("before: %+v", p)
	}
	var during []migrate.Progress
	job := s.job(t, "id", small, func(c *migrate.Config) {
		c.Observe = func(step migrate.Step) {
			if step.Name == migrate.StepStored {
				during = append(during, progress(t, s.job(t, "id")))
			}
		}
	})
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := during[10]; p.Phase != migrate.PhaseCopying || p.Copied() < 0.2 || p.Copied() > 0.8 || p.Epoch != 1 {
		t.Errorf("in the middle: %+v", p)
	}
	if p := progress(t, job); p.Phase != migrate.PhaseFollowing || p.Copied() != 1 || p.Backlog != 0 {
		t.Errorf("after: %+v", p)
	}
	exec(t, s.source, "UPDATE orders SET note = 'x' WHERE id <= 10")
	if p := progress(t, job); p.Backlog < 10 {
		t.Errorf("10 changes later: %+v", p)
	}
	if _, err := job.Cutover(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	exec(t, s.shards["a"], "UPDATE orders_00 SET note = 'y' WHERE id <= 20")
	if p := progress(t, job); p.Phase != migrate.PhaseSwitched || p.Backlog < 5 {
		t.Errorf("after the switch: %+v", p)
	}
}

func TestSteeringIsSeenByEveryRunner(t *testing.T) {
	s := newShop(t, 1)
	one, two := s.job(t, "id"), s.job(t, "id")
	other := s.job(t, "id", func(c *migrate.Config) { c.Name = "another" })
	for _, step := range []struct {
		do   func() error
		want migrate.Steering
	}{
		{func() error { return nil }, migrate.Steering{}},
		{func() error { return one.Pause(t.Context()) }, migrate.Steering{Paused: true}},
		{func() error { return one.Ask(t.Context(), time.Hour) }, migrate.Steering{Paused: true, Wanted: true, Asked: 1}},
		{func() error { return one.Resume(t.Context()) }, migrate.Steering{Wanted: true, Asked: 1}},
		{func() error { return one.Ask(t.Context(), 0) }, migrate.Steering{Asked: 1}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got, err := two.Steering(t.Context()); err != nil || got != step.want {
			t.Errorf("%+v, %v, want %+v", got, err, step.want)
		}
		if got, err := other.Steering(t.Context()); err != nil || got != (migrate.Steering{}) {
			t.Errorf("another job: %+v, %v", got, err)
		}
	}
}

func TestAPauseEndsWithTheJob(t *testing.T) {
	job := newShop(t, 20).job(t, "id")
	mustRun(t, job)
	if err := job.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := job.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := job.Steering(t.Context()); err != nil || got.Paused {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAskingEndsByItself(t *testing.T) {
	job := newShop(t, 1).job(t, "id")
	if err := job.Ask(t.Context(), time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "nothing is wanted any more", func() bool {
		steer, err := job.Steering(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return !steer.Wanted
	})
}

func TestARunGoesOnWhenItsHeartbeatCannotBeWritten(t *testing.T) {
	s := newShop(t, 50)
	exec(t, s.source, "CREATE VIEW shardid_runner AS SELECT 1 AS job") // which nobody can write to
	job := s.job(t, "id")
	mustRun(t, job)
	status, err := job.Status(t.Context())
	if err != nil || status.Phase != migrate.PhaseFollowing || status.Runner != nil || !status.NeedsRunner() {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := job.Cutover(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
}
