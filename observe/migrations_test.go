// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/observe"
	"github.com/shardid/shardid/schema/migrate"
)

// told is a migration with the status that a test sets.
type told struct {
	mu     sync.Mutex
	status migrate.Status
	err    error
}

func (o *told) Status(context.Context) (migrate.Status, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.status, o.err
}

func (o *told) say(s migrate.Status, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status, o.err = s, err
}

// migrationSamples are the values of all metrics of migrations, by their names and labels.
func migrationSamples(s *observe.Service) map[string]float64 {
	all := map[string]float64{}
	for _, f := range s.Gather() {
		if name, is := strings.CutPrefix(f.Name, "shardid_migration_"); is {
			for _, sample := range f.Samples {
				all[name+" "+strings.Join(sample.Values, " ")] = sample.Value
			}
		}
	}
	return all
}

func TestMetricsOfAMigrationAreWhatItsStatusSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lag, left := int64(7), int64(90)
		orders, away := &told{}, &told{err: errors.New("the source is away")}
		orders.say(migrate.Status{
			Progress: migrate.Progress{Phase: migrate.PhaseCopying, Backlog: 12, Tables: []migrate.TableProgress{{Rows: 99, Copied: .25}}},
			Runner:   &migrate.Runner{Leads: true, Cause: "replica1 is behind"}, Lag: &lag, Left: &left,
			Switches: []migrate.PastSwitch{{PauseMS: 40}, {PauseMS: 900}},
		}, nil)
		m := observe.NewMigrations(map[string]observe.Migration{"orders": orders, "away": away})
		s, err := observe.New(observe.Config{Migrations: m})
		if err != nil {
			t.Fatal(err)
		}
		if got := migrationSamples(s); len(got) > 0 {
			t.Errorf("before anybody has asked: %v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); m.Watch(ctx, time.Minute) }()
		synctest.Wait()
		got := migrationSamples(s)
		for name, want := range map[string]float64{
			"up orders": 1, "up away": 0, "copied_ratio orders": .25, "remaining_seconds orders": 90, "waiting_changes orders": 12, "lag_seconds orders": 7,
			"runner_up orders": 1, "needs_runner orders": 0, "throttled orders": 1, "switch_pause_seconds orders": .04,
			"phase orders copying": 1, "phase orders following": 0,
		} {
			if v, has := got[name]; !has || v != want {
				t.Errorf("%s is %v (%v), want %v", name, v, has, want)
			}
		}
		if _, has := got["copied_ratio away"]; has {
			t.Error("a job that has said nothing has metrics")
		}

		// Then the source fails: the metrics keep their values, and shardid_migration_up is 0.
		read := got["read_timestamp_seconds orders"]
		orders.say(migrate.Status{}, errors.New("the source is away"))
		time.Sleep(time.Minute)
		synctest.Wait()
		got = migrationSamples(s)
		if got["up orders"] != 0 || got["waiting_changes orders"] != 12 || got["read_timestamp_seconds orders"] != read {
			t.Errorf("%v", got)
		}
		orders.say(migrate.Status{Progress: migrate.Progress{Phase: migrate.PhaseSwitched}}, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		got = migrationSamples(s)
		if _, has := got["lag_seconds orders"]; has || got["up orders"] != 1 || got["needs_runner orders"] != 1 || got["phase orders switched"] != 1 {
			t.Errorf("%v", got)
		}
		stop()
		<-ended
	})
}
