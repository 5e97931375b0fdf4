// SPDX-License-Identifier: Apache-2.0

package zookeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/zookeeper"
)

// A report of the wrong time would keep the process out once the clock is right.
func TestAClockThatWasFastForSomeReportsBlocksNoProcess(t *testing.T) {
	var clock keygentest.WallClock
	var alarms []error
	workers, err := zookeeper.NewWorkers(newStandIn(), zookeeper.WorkersConfig{
		Path: "/snowflake", Addr: "127.0.0.1:0",
		Now:      clock.Now,
		Observer: zookeeper.Observer{Alarm: func(err error) { alarms = append(alarms, err) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = workers.Close() })
	acquire := func() keygen.Window {
		lease, err := workers.Acquire(t.Context(), keygen.Twitter())
		if err != nil {
			t.Fatal(err)
		}
		return lease.(keygen.Window)
	}
	w := acquire()
	renew := func(differs time.Duration) {
		clock.Set(differs)
		before := w.Ceiling()
		if ceiling, err := w.Renew(t.Context()); err != nil || ceiling < before || ceiling > keygen.Twitter().Tick(time.Now().Add(w.Term())) {
			t.Errorf("off by %v: up to %d, %v", differs, ceiling, err)
		}
	}
	renew(0)
	renew(time.Hour)
	renew(time.Hour)
	if len(alarms) != 1 || !errors.Is(alarms[0], zookeeper.ErrClocksDiffer) {
		t.Errorf("%v", alarms)
	}
	renew(0)
	if err := w.Release(context.Background(), w.NotBefore()+1); err != nil {
		t.Error(err)
	}
	w = acquire() // the time that was written down is no obstacle
	renew(0)
	if len(alarms) != 1 {
		t.Errorf("%v", alarms)
	}
}
