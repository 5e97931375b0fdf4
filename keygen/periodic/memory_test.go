// SPDX-License-Identifier: Apache-2.0

package periodic_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/periodic"
)

// memory keeps counters in memory, with a clock of its own.
type memory struct {
	now func() time.Time

	mu    sync.Mutex
	last  map[string]int64
	calls int
	err   error
}

func newMemory(now func() time.Time) *memory { return &memory{now: now, last: map[string]int64{}} }

func (m *memory) Reserve(ctx context.Context, group, period string, from, to time.Time, n int64) (keygen.Span, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if err := ctx.Err(); err != nil {
		return keygen.Span{}, err
	}
	if m.err != nil {
		return keygen.Span{}, m.err
	}
	if now := m.now(); now.Before(from) || !now.Before(to) {
		return keygen.Span{}, fmt.Errorf("%w: it is %v", keygen.ErrClockRollback, now)
	}
	name := group + "/" + period
	s := keygen.Span{First: m.last[name] + 1, Count: n, Step: 1}
	m.last[name] += n
	return s, nil
}

// reservations counts calls of Reserve, also while one runs in the background.
func (m *memory) reservations() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

// monthly numbers orders by month.
func monthly(c periodic.Counters, change func(*periodic.Config)) periodic.Config {
	cfg := periodic.Config{Counters: c, Name: "order", Period: periodic.Month, Zone: time.UTC, Digits: 6}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func open(t *testing.T, cfg periodic.Config) *periodic.Numbers {
	t.Helper()
	n, err := periodic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func next(t *testing.T, n *periodic.Numbers, key string) string {
	t.Helper()
	number, err := n.Next(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return number.String()
}
