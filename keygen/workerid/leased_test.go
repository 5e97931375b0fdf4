// SPDX-License-Identifier: Apache-2.0

package workerid_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

func TestMemoryLedgerConformance(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	keygentest.Ledger(t, func(*testing.T) workerid.Ledger { return ledger })
}

func TestALeaseIsAWindowThatRenewsAndReturns(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := a.Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	w := lease.(keygen.Window)
	if w.Term() != 30*time.Second || w.Ceiling()-w.NotBefore() != 30_000 {
		t.Errorf("term %v, from %d to %d", w.Term(), w.NotBefore(), w.Ceiling())
	}
	if c, err := w.Renew(t.Context()); err != nil || c < w.NotBefore()+30_000 || c != w.Ceiling() {
		t.Errorf("%d, %v", c, err)
	}
	if err := w.Release(t.Context(), w.NotBefore()+5); err != nil {
		t.Error(err)
	}
	if _, err := w.Renew(t.Context()); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("renewed after the release: %v", err)
	}
}

func TestAnInstanceThatWaitsForTheLeaseOfItsLastRunIsToldSo(t *testing.T) {
	start := time.Now()
	ledger := keygentest.NewMemoryLedger(func() time.Time { return start })
	from, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "orders", Instance: "10.0.0.7:8080"})
	if err != nil {
		t.Fatal(err)
	}
	before, err := from.Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	next, err := from.Acquire(t.Context(), keygen.Twitter())
	if err != nil || next.ID() != before.ID() || next.NotBefore() < before.(keygen.Window).Ceiling() {
		t.Fatalf("%+v, %v", next, err)
	}
	if _, err := next.(keygen.Window).Renew(t.Context()); err == nil || !strings.Contains(err.Error(), "by this instance before") {
		t.Error(err)
	}
}

func TestAFailOverTakesEveryLeaseAwayAndNextOnesBeginATermLater(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	behind := ledger.Copy()
	first, err := a.Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	ledger.FailOver(behind) // knows nothing of the first lease
	second, err := a.Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	if ceiling := first.(keygen.Window).Ceiling(); first.ID() != second.ID() || second.NotBefore() < ceiling {
		t.Errorf("worker id %d until %d, then %d from %d", first.ID(), ceiling, second.ID(), second.NotBefore())
	}
	if _, err := first.(keygen.Window).Renew(t.Context()); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("the first holder renewed: %v", err)
	}
}

func TestSettingsOfALeaseAreChecked(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	for name, cfg := range map[string]workerid.LeasedConfig{
		"no ledger":    {Namespace: "x"},
		"nil ledger":   {Ledger: (*keygentest.MemoryLedger)(nil), Namespace: "x"},
		"no namespace": {Ledger: ledger},
		"short term":   {Ledger: ledger, Namespace: "x", Term: time.Millisecond},
	} {
		if _, err := workerid.NewLeased(cfg); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	_, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: strings.Repeat("界", 65)})
	if err == nil || !strings.Contains(err.Error(), "65 characters") || len(err.Error()) > 200 {
		t.Errorf("a long namespace: %v", err)
	}
	if _, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: strings.Repeat("界", 64)}); err != nil {
		t.Error(err)
	}
	if lease, err := new(workerid.Leased).Acquire(t.Context(), keygen.Twitter()); err == nil {
		t.Errorf("a Leased that NewLeased has not made gave %v", lease)
	}
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "x", Term: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Acquire(t.Context(), keygen.Baidu()); err == nil {
		t.Error("a term of one unit was accepted")
	}
	file := filepath.Join(t.TempDir(), "lease")
	a, err = workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: "x", Term: 5 * time.Second, File: file})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Acquire(t.Context(), keygen.Baidu()); err == nil {
		t.Error("a term of five units, to be spent in pieces of three, was accepted")
	}
}
