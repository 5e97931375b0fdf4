// SPDX-License-Identifier: Apache-2.0

package keygentest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// Ledger runs the conformance suite of ledgers of worker ids. open returns a new handle on
// the same ledger each time, as another process would open it. The ledger's clock must run.
func Ledger(t *testing.T, open func(t *testing.T) workerid.Ledger) {
	t.Helper()
	l := open(t)
	s := ledgerSuite{l}
	t.Run("owners hold distinct worker ids from 0 up to the highest", s.distinct)
	t.Run("when all are held the error counts them", s.exhausted)
	t.Run("a Take repeated because its reply was lost gives the same worker id", s.repeated)
	t.Run("a renewal raises the ceiling and keeps within the term", s.renewal)
	t.Run("what was returned is given again from its end on", s.returned)
	t.Run("an expired worker id is given again from its ceiling on", s.expired)
	t.Run("the worker id that rested longest comes first", s.rested)
	t.Run("who lost the worker id can neither renew nor return it", s.fenced)
	t.Run("a context that has ended ends the call", s.ended)
	t.Run("worker ids above the highest that was asked for rest", s.highest)
	t.Run("a sticky holder gets the worker id that it had last", s.sticky)
	t.Run("a new sticky holder gets the worker id that rested longest when all had one", s.stickyRest)
	t.Run("a sticky holder takes its worker id from the lease that it left behind", s.takenOver)
	t.Run("another layout in the same namespace is refused", s.otherLayout)
	t.Run("layouts that make the same ids are one", s.sameIDs)
	t.Run("a former layout is replaced when its leases have ended", s.formerLayout)
	t.Run("a layout whose ids could be those of the former one does not replace it", s.lowerLayout)
	t.Run("goroutines that take at once never share", func(t *testing.T) { s.atOnce(t, open(t)) })
	t.Run("windows of a worker id never overlap, whoever comes and goes", func(t *testing.T) { s.windows(t, open(t)) })
}

type ledgerSuite struct{ ledger workerid.Ledger }

// ledgerEpoch is the epoch of the layouts in the suite.
var ledgerEpoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// claim returns a claim in a namespace of this test only. Its term is short, so that tests
// do not wait long for the end of a lease.
func (s ledgerSuite) claim(t *testing.T, owner string, most int64) workerid.Claim {
	name := t.Name()
	return workerid.Claim{
		Namespace: fmt.Sprintf("%.20s%x", name[len(name)-min(len(name), 20):], time.Now().UnixNano()),
		Owner:     owner, Holder: "host/" + owner, Most: most,
		Layout: ledgerLayout(10, 12),
		Term:   300 * time.Millisecond,
	}
}

// ledgerLayout returns a layout with the given numbers of worker and sequence bits.
func ledgerLayout(worker, sequence int) keygen.Layout {
	return keygen.Layout{Epoch: ledgerEpoch, Unit: time.Millisecond, Fields: []keygen.Field{
		{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: worker}, {Kind: keygen.Sequence, Bits: sequence},
	}}
}

func by(c workerid.Claim, owner string) workerid.Claim {
	c.Owner, c.Holder = owner, "host/"+owner
	return c
}

func (s ledgerSuite) take(t *testing.T, c workerid.Claim) workerid.Entry {
	t.Helper()
	e, err := s.ledger.Take(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if e.Worker < 0 || e.Worker > c.Most || e.NotBefore < 0 || e.Ceiling < e.NotBefore {
		t.Fatalf("impossible entry %+v", e)
	}
	return e
}

// takeExpired waits until a Take succeeds in a namespace with a single worker id.
func (s ledgerSuite) takeExpired(t *testing.T, c workerid.Claim) workerid.Entry {
	t.Helper()
	e, err := s.await(testwait.Context(t), c, keygen.ErrNoWorker)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// await repeats a Take while it is refused with this error.
func (s ledgerSuite) await(ctx context.Context, c workerid.Claim, refusal error) (workerid.Entry, error) {
	for {
		e, err := s.ledger.Take(ctx, c)
		if !errors.Is(err, refusal) {
			return e, err
		}
	}
}

func (s ledgerSuite) distinct(t *testing.T) {
	c := s.claim(t, "", 2)
	c.Term = time.Minute
	for want := range int64(3) {
		if e := s.take(t, by(c, fmt.Sprint("owner", want))); e.Worker != want {
			t.Errorf("owner %d got %+v", want, e)
		}
	}
}

func (s ledgerSuite) exhausted(t *testing.T) {
	c := s.claim(t, "", 1)
	c.Term = time.Minute
	s.take(t, by(c, "a"))
	s.take(t, by(c, "b"))
	e, err := s.ledger.Take(t.Context(), by(c, "c"))
	if !errors.Is(err, keygen.ErrNoWorker) {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, word := range []string{"2", "host/a", "host/b"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %s: %v", word, err)
		}
	}
}

func (s ledgerSuite) repeated(t *testing.T) {
	c := s.claim(t, "a", 5)
	c.Term = time.Minute
	first, second := s.take(t, c), s.take(t, c)
	if first.Worker != second.Worker || second.NotBefore < first.Ceiling {
		t.Errorf("%+v, then %+v", first, second)
	}
	if _, err := s.ledger.Renew(t.Context(), c, second); err != nil {
		t.Error(err)
	}
}

func (s ledgerSuite) renewal(t *testing.T) {
	c := s.claim(t, "a", 5)
	e := s.take(t, c)
	term := int64(c.Term / c.Layout.Unit)
	begin, last := time.Now(), e.Ceiling
	for range 50 {
		ceiling, err := s.ledger.Renew(t.Context(), c, e)
		if err != nil {
			t.Fatal(err)
		}
		if ceiling < last {
			t.Fatalf("the ceiling fell from %d to %d", last, ceiling)
		}
		last = ceiling
	}
	short := c
	short.Term /= 10
	if ceiling, err := s.ledger.Renew(t.Context(), short, e); err != nil || ceiling < last {
		t.Errorf("a renewal for a shorter term lowered the ceiling from %d to %d, %v", last, ceiling, err)
	}
	if last > e.NotBefore+2*term+time.Since(begin).Milliseconds()+10_000 {
		t.Errorf("the ceiling %d is far beyond %+v and a term of %d", last, e, term)
	}
}

func (s ledgerSuite) returned(t *testing.T) {
	c := s.claim(t, "a", 0)
	c.Term = time.Minute
	begin, e := time.Now(), s.take(t, c)
	end := e.NotBefore + 1
	if err := s.ledger.Return(t.Context(), c, e, end); err != nil {
		t.Fatal(err)
	}
	next := s.takeExpired(t, by(c, "b"))
	if next.NotBefore < end || next.NotBefore > end+time.Since(begin).Milliseconds()+30_000 || next.Generation <= e.Generation {
		t.Errorf("%+v after %+v, returned at %d", next, e, end)
	}
}

func (s ledgerSuite) expired(t *testing.T) {
	c := s.claim(t, "a", 0)
	e := s.take(t, c)
	ceiling, err := s.ledger.Renew(t.Context(), c, e)
	if err != nil {
		t.Fatal(err)
	}
	if next := s.takeExpired(t, by(c, "b")); next.NotBefore < ceiling {
		t.Errorf("%+v begins below the ceiling %d of the holder before", next, ceiling)
	}
}

func (s ledgerSuite) rested(t *testing.T) {
	c := s.claim(t, "", 2)
	c.Term = time.Minute
	entries := map[string]workerid.Entry{}
	var end int64
	for _, owner := range []string{"a", "b", "c"} {
		entries[owner] = s.take(t, by(c, owner))
		end = max(end, entries[owner].NotBefore)
	}
	for _, owner := range []string{"c", "a", "b"} { // back in this order
		end++
		if err := s.ledger.Return(t.Context(), by(c, owner), entries[owner], end); err != nil {
			t.Fatal(err)
		}
	}
	for _, owner := range []string{"c", "a", "b"} {
		if e := s.takeExpired(t, by(c, owner+"2")); e.Worker != entries[owner].Worker {
			t.Errorf("got %d, want %d, which rested longest", e.Worker, entries[owner].Worker)
		}
	}
}

func (s ledgerSuite) fenced(t *testing.T) {
	c := s.claim(t, "a", 0)
	lost := s.take(t, c)
	b := by(c, "b")
	now := s.takeExpired(t, b)
	if ceiling, err := s.ledger.Renew(t.Context(), c, lost); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("the old holder renewed: %d, %v", ceiling, err)
	}
	if err := s.ledger.Return(t.Context(), c, lost, 1); err != nil {
		t.Error(err)
	}
	if ceiling, err := s.ledger.Renew(t.Context(), b, now); err != nil || ceiling < now.Ceiling {
		t.Errorf("the old holder's return took from the new one: %d, %v", ceiling, err)
	}
	if ceiling, err := s.ledger.Renew(t.Context(), b, lost); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("an entry of another generation was renewed: %d, %v", ceiling, err)
	}
}

func (s ledgerSuite) ended(t *testing.T) {
	c := s.claim(t, "a", 0)
	c.Term = time.Minute
	e := s.take(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ledger.Take(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Take: %v", err)
	}
	if _, err := s.ledger.Renew(ctx, c, e); !errors.Is(err, context.Canceled) {
		t.Errorf("Renew: %v", err)
	}
	if err := s.ledger.Return(ctx, c, e, e.NotBefore); !errors.Is(err, context.Canceled) {
		t.Errorf("Return: %v", err)
	}
	if _, err := s.ledger.Renew(t.Context(), c, e); err != nil {
		t.Errorf("after calls that were ended: %v", err)
	}
}

func (s ledgerSuite) highest(t *testing.T) {
	c := s.claim(t, "", 2)
	c.Term = time.Minute
	for _, owner := range []string{"a", "b", "c"} {
		e := s.take(t, by(c, owner))
		if err := s.ledger.Return(t.Context(), by(c, owner), e, e.NotBefore+3-e.Worker); err != nil { // 2 rested longest
			t.Fatal(err)
		}
	}
	c.Most = 0
	if e := s.takeExpired(t, by(c, "d")); e.Worker != 0 {
		t.Errorf("%+v", e)
	}
}

// sticky is a claim of an instance; each start has another owner.
func sticky(c workerid.Claim, instance string, start int) workerid.Claim {
	c.Owner, c.Holder, c.Sticky = fmt.Sprint(instance, " start ", start), instance, true
	return c
}

func (s ledgerSuite) sticky(t *testing.T) {
	c := s.claim(t, "", 9)
	c.Term = time.Minute
	instances := []string{"10.0.0.7:80", "10.0.0.8:80", "10.0.0.9:80"}
	had := map[string]workerid.Entry{}
	for _, instance := range instances {
		had[instance] = s.take(t, sticky(c, instance, 1))
	}
	for i, instance := range instances { // the first one rested longest
		e := had[instance]
		if err := s.ledger.Return(t.Context(), sticky(c, instance, 1), e, e.NotBefore+1+int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.take(t, sticky(c, "10.0.0.6:80", 1)); e.Worker != 3 {
		t.Errorf("a new instance got %d, which another one had", e.Worker)
	}
	for start := 2; start < 4; start++ {
		for _, instance := range []string{instances[2], instances[0], instances[1]} {
			e := s.take(t, sticky(c, instance, start))
			if e.Worker != had[instance].Worker || e.Generation <= had[instance].Generation || e.NotBefore <= had[instance].NotBefore {
				t.Errorf("%s had %+v, and at its start %d got %+v", instance, had[instance], start, e)
			}
			had[instance] = e
		}
	}
}

func (s ledgerSuite) stickyRest(t *testing.T) {
	c := s.claim(t, "", 1)
	c.Term = time.Minute
	longest := s.take(t, sticky(c, "a", 1))
	other := s.take(t, sticky(c, "b", 1))
	for end, e := range map[int64]workerid.Entry{longest.NotBefore + 1: longest, other.NotBefore + 5: other} {
		instance := map[int64]string{longest.Worker: "a", other.Worker: "b"}[e.Worker]
		if err := s.ledger.Return(t.Context(), sticky(c, instance, 1), e, end); err != nil {
			t.Fatal(err)
		}
	}
	if e := s.takeExpired(t, sticky(c, "c", 1)); e.Worker != longest.Worker {
		t.Errorf("with all worker ids used once, a new instance got %d", e.Worker)
	}
}

func (s ledgerSuite) takenOver(t *testing.T) {
	c := s.claim(t, "", 9)
	c.Term = time.Minute
	first := sticky(c, "10.0.0.7:80", 1)
	killed := s.take(t, first)
	ceiling, err := s.ledger.Renew(t.Context(), first, killed)
	if err != nil {
		t.Fatal(err)
	}
	next := s.take(t, sticky(c, "10.0.0.7:80", 2))
	if next.Worker != killed.Worker || next.NotBefore < ceiling {
		t.Errorf("%+v after %+v, renewed up to %d", next, killed, ceiling)
	}
	if ceiling, err := s.ledger.Renew(t.Context(), first, killed); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("who was left behind renewed: %d, %v", ceiling, err)
	}
	if e := s.take(t, by(c, "somebody")); e.Worker == killed.Worker {
		t.Errorf("%+v", e)
	}
}

func (s ledgerSuite) otherLayout(t *testing.T) {
	c := s.claim(t, "a", 5)
	e := s.take(t, c)
	unit, epoch, order := ledgerLayout(10, 12), ledgerLayout(10, 12), ledgerLayout(10, 12)
	unit.Unit = time.Second
	epoch.Epoch = ledgerEpoch.AddDate(1, 0, 0)
	order.Fields = []keygen.Field{order.Fields[0], order.Fields[2], order.Fields[1]}
	for name, l := range map[string]keygen.Layout{
		"another unit": unit, "another epoch": epoch, "another order": order,
		"more workers": ledgerLayout(12, 10), "fewer workers": ledgerLayout(8, 14), "a shorter sequence": ledgerLayout(10, 11),
	} {
		other := by(c, "b")
		other.Layout = l
		_, err := s.ledger.Take(t.Context(), other)
		if !errors.Is(err, keygen.ErrLayout) || !strings.Contains(err.Error(), c.Layout.Fingerprint()) || !strings.Contains(err.Error(), l.Fingerprint()) {
			t.Errorf("%s: %v", name, err)
		}
		other.Former = ledgerLayout(9, 13) // which it never had
		if _, err := s.ledger.Take(t.Context(), other); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%s after a layout that it never had: %v", name, err)
		}
	}
	if _, err := s.ledger.Renew(t.Context(), c, e); err != nil {
		t.Errorf("after other layouts were refused: %v", err)
	}
	s.take(t, by(c, "c"))
}

func (s ledgerSuite) sameIDs(t *testing.T) {
	c := s.claim(t, "a", 5)
	first := s.take(t, c)
	b := by(c, "b")
	b.Layout.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Datacenter, Bits: 3}, {Kind: keygen.Worker, Bits: 7}, {Kind: keygen.Sequence, Bits: 12}}
	b.Layout.Epoch = ledgerEpoch.In(time.FixedZone("", 3600))
	if second := s.take(t, b); second.Worker == first.Worker {
		t.Errorf("%+v and %+v", first, second)
	}
}

func (s ledgerSuite) formerLayout(t *testing.T) {
	for name, former := range map[string]keygen.Layout{"other widths": ledgerLayout(10, 12), "another unit": slowLayout()} {
		t.Run(name, func(t *testing.T) {
			c := s.claim(t, "", 3)
			c.Layout = former
			long := by(c, "a") // it has not ended when the next one asks, however busy the machine is
			long.Term = time.Minute
			returned, left := s.take(t, long), s.take(t, by(c, "b"))
			next := by(c, "c")
			next.Layout, next.Former = ledgerLayout(12, 10), former
			_, err := s.ledger.Take(t.Context(), next)
			if !errors.Is(err, keygen.ErrLayout) || !strings.Contains(err.Error(), "host/") {
				t.Fatalf("beside two leases of the former layout: %v", err)
			}
			if err := s.ledger.Return(t.Context(), long, returned, returned.NotBefore+1); err != nil {
				t.Fatal(err)
			}
			ceiling, err := s.ledger.Renew(t.Context(), by(c, "b"), left)
			if err != nil {
				t.Fatal(err)
			}
			e, err := s.await(testwait.Context(t), next, keygen.ErrLayout)
			if err != nil {
				t.Fatal(err)
			}
			if begin, end := next.Layout.At(e.NotBefore), former.At(ceiling); begin.Before(end) {
				t.Errorf("leases of the new layout begin at %v, and those of the former ended at %v", begin, end)
			}
			s.changed(t, c, next, left)
		})
	}
}

// slowLayout returns a layout of longer ticks, with ids below those of the others.
func slowLayout() keygen.Layout {
	l := ledgerLayout(5, 5)
	l.Unit, l.Fields[0].Bits = 20*time.Millisecond, 37
	return l
}

// changed checks a namespace in which the claim old had the entry ended, after next has
// changed the layout.
func (s ledgerSuite) changed(t *testing.T, old, next workerid.Claim, ended workerid.Entry) {
	t.Helper()
	if ceiling, err := s.ledger.Renew(t.Context(), by(old, "b"), ended); !errors.Is(err, keygen.ErrWorkerLost) {
		t.Errorf("a lease of the former layout was renewed: %d, %v", ceiling, err)
	}
	if e, err := s.ledger.Take(t.Context(), by(old, "d")); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("the former layout got a lease: %+v, %v", e, err)
	}
	plain := by(next, "e")
	plain.Former = keygen.Layout{}
	seen := map[int64]bool{}
	for i := range int64(3) { // beside the first
		seen[s.take(t, by(plain, fmt.Sprint("e", i))).Worker] = true
	}
	if len(seen) != 3 {
		t.Errorf("three processes have the worker ids %v", seen)
	}
}

func (s ledgerSuite) lowerLayout(t *testing.T) {
	c := s.claim(t, "a", 5)
	e := s.take(t, c)
	if err := s.ledger.Return(t.Context(), c, e, e.NotBefore+1); err != nil {
		t.Fatal(err)
	}
	next := by(c, "b")
	next.Layout, next.Former = ledgerLayout(10, 8), c.Layout // time stands four bits lower
	for range 3 {
		if e, err := s.ledger.Take(t.Context(), next); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%+v, %v", e, err)
		}
	}
	s.take(t, by(c, "c"))
}

func (s ledgerSuite) atOnce(t *testing.T, other workerid.Ledger) {
	const owners = 16
	c := s.claim(t, "", owners-1)
	c.Term = time.Minute
	var mu sync.Mutex
	held := map[int64]string{}
	var wg sync.WaitGroup
	for i := range owners {
		wg.Go(func() {
			ledger := s.ledger
			if i%2 == 1 {
				ledger = other
			}
			owner := fmt.Sprint("owner", i)
			e, err := ledger.Take(t.Context(), by(c, owner))
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if held[e.Worker] != "" {
				t.Errorf("%s and %s both got %d", owner, held[e.Worker], e.Worker)
			}
			held[e.Worker] = owner
		})
	}
	wg.Wait()
	if len(held) != owners {
		t.Errorf("%d of %d owners got a worker id", len(held), owners)
	}
}

// stay is the period in which one owner had a worker id.
type stay struct {
	owner    string
	from, to int64 // ticks, to is not included
}

func (s ledgerSuite) windows(t *testing.T, other workerid.Ledger) {
	const owners, stays = 6, 8
	c := s.claim(t, "", 3)
	c.Term = 40 * time.Millisecond
	var mu sync.Mutex
	byWorker := map[int64][]stay{}
	var wg sync.WaitGroup
	for i := range owners {
		wg.Go(func() {
			visitor := ledgerSuite{s.ledger}
			if i%2 == 1 {
				visitor.ledger = other
			}
			for n := range stays {
				worker, one := visitor.stay(t, by(c, fmt.Sprintf("owner%d.%d", i, n)), n)
				mu.Lock()
				byWorker[worker] = append(byWorker[worker], one)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for worker, all := range byWorker {
		slices.SortFunc(all, func(a, b stay) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
		for i := 1; i < len(all); i++ {
			if all[i].from < all[i-1].to {
				t.Errorf("worker id %d: %+v overlaps %+v", worker, all[i-1], all[i])
			}
		}
	}
}

// stay takes a worker id, renews it n times, and then returns it or, every other time,
// abandons it.
func (s ledgerSuite) stay(t *testing.T, c workerid.Claim, n int) (int64, stay) {
	e, err := s.await(testwait.Context(t), c, keygen.ErrNoWorker)
	if err != nil {
		t.Error(err)
	}
	one := stay{c.Owner, e.NotBefore, e.Ceiling}
	for range n {
		ceiling, err := s.ledger.Renew(t.Context(), c, e)
		if err != nil {
			if !errors.Is(err, keygen.ErrWorkerLost) {
				t.Error(err)
			}
			return e.Worker, one
		}
		one.to = ceiling
	}
	if n%2 == 0 {
		one.to = max(min(e.NotBefore+1, one.to), e.NotBefore)
		if err := s.ledger.Return(t.Context(), c, e, one.to); err != nil {
			t.Error(err)
		}
	}
	return e.Worker, one
}
