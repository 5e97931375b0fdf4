// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
)

// stop holds the next call of here, once it is armed, until goOn is closed.
type stop struct {
	armed atomic.Bool
	goOn  chan struct{}
}

func (s *stop) here() {
	if s.armed.CompareAndSwap(true, false) {
		<-s.goOn
	}
}

// A process that is stopped is stopped everywhere: here a call of Next, and the renewals, whose
// ledger is down. The next holder of the worker id issues ids meanwhile.
func TestACallThatWasStoppedIssuesNoIDOfTheNextHolderWhereverItWas(t *testing.T) {
	for name, at := range map[string]func(cfg snowflake.Config, s *stop) snowflake.Config{
		"before it read the clock": func(cfg snowflake.Config, s *stop) snowflake.Config {
			cfg.Now = func() time.Time { s.here(); return time.Now() }
			return cfg
		},
		"after it read the clock": func(cfg snowflake.Config, s *stop) snowflake.Config {
			cfg.Now = func() time.Time { now := time.Now(); s.here(); return now }
			return cfg
		},
		"after it read the limit of its lease": func(cfg snowflake.Config, s *stop) snowflake.Config {
			cfg.Sequence = snowflake.Scatter
			return snowflake.Drawing(cfg, func(int64) int64 { s.here(); return 0 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := keygentest.NewMemoryLedger(time.Now)
				ledger, s := &flaky{Ledger: memory}, &stop{goOn: make(chan struct{})}
				stopped := open(t, at(snowflake.Config{Layout: millennium, Worker: leased(t, ledger)}, s))
				before := next(t, stopped)
				time.Sleep(time.Second)
				ledger.fail(errDown)
				s.armed.Store(true)
				late := make(chan int64)
				go func() {
					id, err := stopped.Next(t.Context())
					if err != nil {
						t.Error(err)
					}
					late <- id
				}()
				synctest.Wait()
				time.Sleep(time.Minute)
				holder := open(t, snowflake.Config{Layout: millennium, Worker: leased(t, memory)})
				first := next(t, holder)
				if first.Worker != before.Worker || s.armed.Load() {
					t.Fatalf("the next holder has worker id %d, not %d, or nothing was stopped", first.Worker, before.Worker)
				}
				ledger.fail(nil)
				close(s.goOn)
				p, err := millennium.Parse(<-late)
				if err != nil || p.Worker == first.Worker && !p.Time.Before(first.Time) {
					t.Errorf("%+v after the next holder has begun with %+v, %v", p, first, err)
				}
			})
		})
	}
}
