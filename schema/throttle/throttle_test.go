// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/shardid/shardid/schema/throttle"
)

func newThrottle(t *testing.T, cfg throttle.Config) *throttle.Throttle {
	t.Helper()
	cfg.Name = "orders"
	if cfg.Source == nil {
		cfg.Source = new(sql.DB) // is asked for nothing
	}
	th, err := throttle.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// busy is a cause that lasts for a time.
func busy(d time.Duration) func(context.Context) (string, error) {
	until := time.Now().Add(d)
	return func(context.Context) (string, error) {
		if time.Now().Before(until) {
			return "a backup is under way", nil
		}
		return "", nil
	}
}

func TestWithoutACauseNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		th := newThrottle(t, throttle.Config{})
		th.Copied(1_000_000)
		if err := th.Wait(t.Context()); err != nil || time.Since(begun) != 0 || th.Cause() != "" {
			t.Errorf("%v after %v, %q", err, time.Since(begun), th.Cause())
		}
	})
}

func TestACauseIsToldOnceAndSoIsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		th := newThrottle(t, throttle.Config{Also: busy(time.Minute), Observe: func(why string) { told = append(told, why) }})
		done := make(chan error)
		go func() { done <- th.Wait(t.Context()) }()
		time.Sleep(30 * time.Second)
		if why := th.Cause(); why != "a backup is under way" {
			t.Errorf("the cause is %q", why)
		}
		if err := <-done; err != nil || th.Cause() != "" {
			t.Errorf("%v, %q", err, th.Cause())
		}
		if fmt.Sprintf("%q", told) != `["a backup is under way" ""]` {
			t.Errorf("told %q", told)
		}
	})
}

func TestACauseOfLessThanASecondIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t, throttle.Config{Also: busy(900 * time.Millisecond), Observe: func(why string) { t.Errorf("told %q", why) }})
		if err := th.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAPauseByAnOperatorHasNoTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paused atomic.Bool
		paused.Store(true)
		th := newThrottle(t, throttle.Config{Paused: paused.Load, Longest: time.Minute, Observe: func(why string) { t.Errorf("told %q", why) }})
		done := make(chan error)
		go func() { done <- th.Wait(t.Context()) }()
		time.Sleep(time.Hour)
		if why := th.Cause(); why != "paused by an operator" {
			t.Errorf("the cause is %q", why)
		}
		paused.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestACauseThatLastsTooLongIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t, throttle.Config{Also: busy(time.Hour), Longest: time.Minute})
		begun := time.Now()
		err := th.Wait(t.Context())
		if !errors.Is(err, throttle.ErrTooLong) || !strings.Contains(err.Error(), "backup") || time.Since(begun) > 2*time.Minute {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		th := newThrottle(t, throttle.Config{Also: busy(time.Hour)})
		done := make(chan error)
		for range 2 { // one looks, the other waits for its turn
			go func() { done <- th.Wait(ctx) }()
		}
		for range 2 {
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
	})
}

func TestARateIsKeptOnAverageAndCanBeChangedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newThrottle(t, throttle.Config{Rate: 1000})
		begun := time.Now()
		for range 100 { // chunks of 500 rows, each of which takes a fifth of a second
			if err := th.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
			th.Copied(500)
		}
		if took := time.Since(begun); took < 48*time.Second || took > 51*time.Second {
			t.Errorf("50,000 rows took %v", took)
		}
		th.Copied(1_000_000)
		done := make(chan error)
		go func() { done <- th.Wait(t.Context()) }()
		time.Sleep(time.Minute)
		if why := th.Cause(); why != "the rate is at most 1000 rows a second" {
			t.Errorf("the cause is %q", why)
		}
		th.SetRate(0)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestSlowCommitsThrottleACopy(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	th := newThrottle(t, throttle.Config{Source: db, MaxCommitLatency: time.Nanosecond, Longest: time.Nanosecond})
	if err := th.Wait(t.Context()); !errors.Is(err, throttle.ErrTooLong) || !strings.Contains(err.Error(), "a commit on the source takes ") {
		t.Error(err)
	}
	th = newThrottle(t, throttle.Config{Source: db, MaxCommitLatency: time.Hour})
	if err := th.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// Another database has none of the source's heartbeats.
func TestAServerThatIsNoReplicaThrottlesACopy(t *testing.T) {
	dir := t.TempDir()
	var dbs [2]*sql.DB
	for i := range dbs {
		db, err := sql.Open("sqlite", filepath.Join(dir, fmt.Sprintf("%d.db", i)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		dbs[i] = db
	}
	th := newThrottle(t, throttle.Config{Source: dbs[0], Replicas: []throttle.Replica{{Name: "r1", DB: dbs[1]}}, Longest: time.Nanosecond})
	notYet := func() {
		t.Helper()
		if err := th.Wait(t.Context()); !errors.Is(err, throttle.ErrTooLong) || !strings.Contains(err.Error(), "it has shown no heartbeat of this runner yet") {
			t.Error(err)
		}
	}
	notYet()
	if _, err := dbs[1].ExecContext(t.Context(), "CREATE TABLE shardid_beat (job TEXT PRIMARY KEY, beat INTEGER NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	notYet()
	if err := dbs[1].Close(); err != nil {
		t.Fatal(err)
	}
	if err := th.Wait(t.Context()); !errors.Is(err, throttle.ErrTooLong) || !strings.Contains(err.Error(), "replica r1 does not answer: ") {
		t.Error(err)
	}
	th = newThrottle(t, throttle.Config{Source: dbs[0], Replicas: []throttle.Replica{{Name: "same", DB: dbs[0]}}})
	if err := th.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestALimitThatMakesNoSenseIsRefused(t *testing.T) {
	for name, cfg := range map[string]throttle.Config{
		"no source":        {Name: "orders"},
		"no name":          {Source: new(sql.DB)},
		"a negative rate":  {Source: new(sql.DB), Name: "orders", Rate: -1},
		"a lag of nothing": {Source: new(sql.DB), Name: "orders", MaxLag: time.Nanosecond},
		"a lag of a day":   {Source: new(sql.DB), Name: "orders", MaxLag: 24 * time.Hour},
		"no replica":       {Source: new(sql.DB), Name: "orders", Replicas: []throttle.Replica{{Name: "r1"}}},
	} {
		if _, err := throttle.New(cfg); !errors.Is(err, throttle.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
