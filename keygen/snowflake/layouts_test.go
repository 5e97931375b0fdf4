// SPDX-License-Identifier: Apache-2.0

package snowflake_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// split has so many bits of worker and sequence.
func split(worker, sequence int) keygen.Layout {
	l := keygen.Twitter()
	l.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: worker}, {Kind: keygen.Sequence, Bits: sequence}}
	return l
}

func leasedIn(t *testing.T, l workerid.Ledger, namespace string, layout, former keygen.Layout) (*snowflake.Generator, error) {
	t.Helper()
	worker, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: namespace, Former: former})
	if err != nil {
		t.Fatal(err)
	}
	g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: worker})
	if err == nil {
		t.Cleanup(func() { _ = g.Close() })
	}
	return g, err
}

// beside lets two generators fill in turn, rounds times or until an id comes twice.
func beside(t *testing.T, rounds int, a, b *snowflake.Generator) (twice bool) {
	t.Helper()
	seen := map[int64]bool{}
	ids := make([]int64, 2000)
	for range rounds {
		for _, g := range []*snowflake.Generator{a, b} {
			if err := g.Fill(t.Context(), ids); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				twice = twice || seen[id]
				seen[id] = true
			}
		}
		if twice {
			return true
		}
	}
	return false
}

// This way does not work, as package workerid says.
func TestANamespaceOfItsOwnDoesNotKeepAnotherLayoutApart(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	old, err := leasedIn(t, ledger, "old", split(10, 12), keygen.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	wide, err := leasedIn(t, ledger, "new", split(12, 10), keygen.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if !beside(t, 2000, old, wide) {
		t.Error("no id came twice: the other tests prove nothing")
	}
}

func TestWithAnEarlierEpochOldAndNewLayoutRunSideBySide(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	narrow, wide := split(10, 12), split(12, 10)
	wide.Epoch = wide.Epoch.AddDate(-1, 0, 0)
	until, err := wide.Above(narrow, time.Now())
	if err != nil || until.Before(time.Now().AddDate(0, 11, 0)) {
		t.Fatalf("until %v, %v", until, err)
	}
	old, err := leasedIn(t, ledger, "old", narrow, keygen.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := leasedIn(t, ledger, "new", wide, keygen.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if beside(t, 100, old, next) {
		t.Error("an id came twice")
	}
}

func TestInOneNamespaceTheNewLayoutComesWhenTheOldOneHasEnded(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	narrow, wide := split(10, 12), split(12, 10)
	old, err := leasedIn(t, ledger, "shop", narrow, keygen.Layout{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leasedIn(t, ledger, "shop", wide, narrow); !errors.Is(err, keygen.ErrLayout) {
		t.Fatalf("beside the old layout: %v", err)
	}
	ids := make([]int64, 40_000)
	if err := old.Fill(t.Context(), ids[:20_000]); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := leasedIn(t, ledger, "shop", wide, narrow)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Fill(t.Context(), ids[20_000:]); err != nil {
		t.Fatal(err)
	}
	if id, twice := keygentest.Duplicate(ids); twice {
		t.Errorf("%d came twice", id)
	}
	if _, err := leasedIn(t, ledger, "shop", narrow, keygen.Layout{}); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("the old layout beside the new one: %v", err)
	}
}

func TestTheWorkerIDsToSwitchToAreLeasedInTheSameNamespace(t *testing.T) {
	ledger := keygentest.NewMemoryLedger(time.Now)
	leased := func(namespace string) keygen.Assigner {
		a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: ledger, Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for namespace, want := range map[string]bool{"shop": true, "spare": false} {
		g, err := snowflake.New(t.Context(), snowflake.Config{Worker: leased("shop"), Rollback: []snowflake.Policy{snowflake.SwitchWorker(leased(namespace))}})
		if (err == nil) != want {
			t.Errorf("%s: %v", namespace, err)
		}
		if err == nil {
			_ = g.Close()
		}
	}
}

func TestALayoutThatIsChangedLaterChangesNoGenerator(t *testing.T) {
	l := keygen.CosID()
	g, err := snowflake.New(t.Context(), snowflake.Config{Layout: l, Worker: workerid.Static(5)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	l.Fields[1].Bits = 3
	if got := g.Layout().Fingerprint(); got != keygen.CosID().Fingerprint() {
		t.Error(got)
	}
}

func TestALayoutWithManyLongTicksIsAccepted(t *testing.T) {
	layout := keygen.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Hour,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 58}, {Kind: keygen.Worker, Bits: 3}, {Kind: keygen.Sequence, Bits: 2}},
	}
	g, err := snowflake.New(t.Context(), snowflake.Config{Layout: layout, Worker: fresh(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Error(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
