// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

var simulationSeed = flag.Uint64("simulation.seed", 0, "run only the simulation with this seed")

// The simulation drives the real generators and leases through everything that can happen
// to processes, clocks and databases, from one goroutine, on one virtual clock and with one
// source of randomness: a seed always gives the same run.
func TestNoIDComesTwiceInAnySimulation(t *testing.T) {
	synctest.Test(t, simulations)
}

func simulations(t *testing.T) {
	seeds, least := uint64(300), int64(100_000_000)
	if effort.Soak() {
		seeds, least = 10*seeds, 10*least
	}
	if effort.Race {
		seeds, least = seeds/10, least/10
	}
	if *simulationSeed != 0 {
		report(t, simulate(*simulationSeed, sound))
		return
	}
	var total tally
	for seed := uint64(1); seed <= seeds; seed++ {
		r := simulate(seed, sound)
		report(t, r)
		total.add(r.tally)
	}
	t.Logf("%d seeds: %+v", seeds, total)
	if total.ids < least {
		t.Errorf("only %d ids were issued; %d are wanted", total.ids, least)
	}
	if total.kills == 0 || total.jumps == 0 || total.wrong == 0 || total.flips == 0 || total.lost == 0 || total.switches == 0 {
		t.Errorf("something never happened: %+v", total)
	}
}

func report(t *testing.T, r result) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("%v\nagain: go test ./keygen/snowflake -run TestNoIDComesTwiceInAnySimulation -simulation.seed=%d", r.err, r.seed)
	}
}

// Each protection is switched off once. If the simulation did not detect that, it would
// prove nothing about that protection.
func TestTheSimulationSeesTheDuplicateWithoutALeaseDeadline(t *testing.T) {
	mustFail(t, weakness{noDeadline: true})
}

func TestTheSimulationSeesTheDuplicateWithoutAPersistedCeiling(t *testing.T) {
	mustFail(t, weakness{ledger: keygentest.Weakness{NoCeiling: true}})
}

func TestTheSimulationSeesTheDuplicateWithoutAFence(t *testing.T) {
	mustFail(t, weakness{ledger: keygentest.Weakness{NoFence: true}})
}

func TestTheSimulationSeesTheDuplicateWithoutTheLedgersIdentity(t *testing.T) {
	mustFail(t, weakness{ledger: keygentest.Weakness{NoIdentity: true}})
}

// The clocks of the servers differ by up to a term.
func TestTheSimulationSeesTheDuplicateWhenAFailOverIsGivenOneTermOnly(t *testing.T) {
	mustFail(t, weakness{ledger: keygentest.Weakness{OneTerm: true}})
}

func TestTheSimulationSeesTheDuplicateWhenTheSequenceOverflowsIntoTheWorker(t *testing.T) {
	mustFail(t, weakness{noCarry: true})
}

func TestTheSimulationSeesTheDuplicateWhenAStateIsKeptAcrossLeases(t *testing.T) {
	mustFail(t, weakness{keepState: true})
}

func TestTheSimulationSeesWhoIsHeldOutByAClockWithoutTheLedgers(t *testing.T) {
	mustFailWith(t, weakness{noLedger: true}, errHeldOut)
}

func mustFail(t *testing.T, w weakness) {
	t.Helper()
	mustFailWith(t, w, errDuplicate)
}

func mustFailWith(t *testing.T, w weakness, want error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for seed := uint64(1); seed <= 300; seed++ {
			if r := simulate(seed, w); errors.Is(r.err, want) {
				t.Logf("seed %d: %v", seed, r.err)
				return
			}
		}
		t.Errorf("%v is not found in 300 seeds with %+v", want, w)
	})
}

// weakness is what a simulation switches off.
type weakness struct {
	ledger     keygentest.Weakness
	noDeadline bool // the generator issues past the ceiling
	noCarry    bool // a used-up sequence overflows into the bits beside it
	keepState  bool // a new lease goes on with the old one's limit
	noLedger   bool // nothing but the own clock says what time it is
}

var sound = weakness{}

var (
	errDuplicate = errors.New("an id came twice")
	errHeldOut   = errors.New("a process got no ids for longer than a term")
)

type result struct {
	seed uint64
	tally
	err error
}

type tally struct{ ids, kills, closes, pauses, jumps, wrong, flips, lost, late, switches int64 }

func (t *tally) add(o tally) {
	t.ids += o.ids
	t.kills += o.kills
	t.closes += o.closes
	t.pauses += o.pauses
	t.jumps += o.jumps
	t.wrong += o.wrong
	t.flips += o.flips
	t.lost += o.lost
	t.late += o.late
	t.switches += o.switches
}

const (
	simTerm  = time.Second
	simSteps = 1500
)

var simLayout = keygen.Layout{
	Epoch: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
	Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 2}, {Kind: keygen.Sequence, Bits: 10}},
}

// world is one simulation. The virtual clock is the true time.
type world struct {
	r       *rand.Rand
	weak    weakness
	ahead   time.Duration // of the ledger's clock
	flipped time.Time     // when the ledger failed over last
	ledger  *keygentest.MemoryLedger
	replica *keygentest.MemoryLedger // may be behind
	late    []func()                 // requests whose senders have given up on them
	procs   []*process
	issued  map[int64][]stretch // by what stands in an id beside tick and sequence
	heldOut error
	tally
}

// stretch is consecutive states that were issued together.
type stretch struct{ first, last int64 }

// process is a generator, or a place where none runs at present.
type process struct {
	g           *Generator
	ownClock    bool          // it was given a clock that goes back with the wall clock
	skew        time.Duration // of its wall clock
	wrong       time.Duration // by how much it is wrong beside, until rightAt
	rightAt     time.Time
	pausedUntil time.Time
	outSince    time.Time // since when it got no id though its lease was renewed
}

func (p *process) wall() time.Time { return time.Now().Add(p.skew + p.wrong) }

func simulate(seed uint64, weak weakness) result {
	w := &world{r: rand.New(rand.NewPCG(seed, 0)), weak: weak, issued: map[int64][]stretch{}}
	w.ledger = keygentest.NewMemoryLedger(func() time.Time { return time.Now().Add(w.ahead) })
	w.ledger.Weaken(weak.ledger)
	w.replica = w.ledger.Copy()
	for i := range 5 { // for four worker ids
		w.procs = append(w.procs, &process{ownClock: i%2 == 0})
	}
	for range simSteps {
		w.step()
	}
	return result{seed, w.tally, w.check()}
}

func (w *world) step() {
	time.Sleep(time.Duration(w.r.Int64N(int64(40 * time.Millisecond))))
	p := w.procs[w.r.IntN(len(w.procs))]
	if time.Now().After(p.rightAt) {
		p.wrong = 0
	}
	switch {
	case time.Now().Before(p.pausedUntil):
		p.outSince = time.Time{}
	case p.g == nil:
		w.start(p)
	default:
		w.act(p)
	}
	switch n := w.r.IntN(1000); {
	case n < 20:
		w.replica = w.ledger.Copy()
	case n < 25:
		w.flips++
		w.flipped = time.Now()
		w.ledger.FailOver(w.replica)
		w.ahead = time.Duration(w.r.Int64N(int64(simTerm))) - simTerm/2
	case n < 60 && len(w.late) > 0:
		i := w.r.IntN(len(w.late))
		w.late[i]()
		w.late = slices.Delete(w.late, i, i+1)
	}
}

// act lets a running process do one thing.
func (w *world) act(p *process) {
	switch n := w.r.IntN(1000); {
	case n < 15:
		w.kills++
		p.g = nil
	case n < 25:
		w.closes++
		_ = p.g.renewer.end()
		p.g = nil
	case n < 45:
		w.pauses++
		p.pausedUntil = time.Now().Add(time.Duration(w.r.Int64N(int64(3 * simTerm))))
	case n < 50 && p.wrong == 0:
		w.tally.wrong++
		p.wrong = time.Duration(w.r.Int64N(int64(200*time.Hour))) - 100*time.Hour
		p.rightAt = time.Now().Add(3 * time.Second)
	case n < 60:
		w.jumps++
		p.skew = time.Duration(w.r.Int64N(int64(2*simTerm))) - simTerm
	case n < 400:
		w.renew(p)
	default:
		w.issue(p)
	}
}

func (w *world) start(p *process) {
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: &lossy{w}, Namespace: "sim", Term: simTerm})
	if err != nil {
		panic(err)
	}
	cfg := Config{
		Layout: simLayout, Worker: a, Borrow: 200 * time.Millisecond, Rollback: []Policy{SwitchWorker(a)},
		random: w.r.Int64N, wall: p.wall,
	}
	if p.ownClock {
		cfg.Now = p.wall
	}
	p.outSince = time.Time{}
	g, err := assemble(context.Background(), cfg)
	if err != nil {
		return // no worker id is free, or the reply was lost
	}
	if w.weak.noCarry { // as if time stood where the sequence overflows to
		g.timeShift -= 2
	}
	p.g = g
	w.weaken(g)
}

func (w *world) weaken(g *Generator) {
	if w.weak.noDeadline {
		g.renewer.leaseState.Load().limit.Store(g.end)
	}
	if w.weak.noLedger {
		g.clock.Unfollow()
	}
}

func (w *world) renew(p *process) {
	before := p.g.renewer.leaseState.Load()
	if err := p.g.renewer.renew(); err != nil {
		p.outSince = time.Time{}
	}
	w.weaken(p.g)
	w.noteSwitch(p, before)
}

// noteOutcome notes whether a process got ids while its lease could be renewed.
func (w *world) noteOutcome(p *process, err error) {
	now := time.Now()
	switch {
	case err == nil || now.Sub(w.flipped) < 4*simTerm:
		p.outSince = time.Time{}
	case p.outSince.IsZero():
		p.outSince = now
	case now.Sub(p.outSince) > simTerm && w.heldOut == nil:
		w.heldOut = fmt.Errorf("%w: %v, its clock being off by %v: %w", errHeldOut, now.Sub(p.outSince), p.skew+p.wrong, err)
	}
}

func (w *world) noteSwitch(p *process, before *leaseState) {
	after := p.g.renewer.leaseState.Load()
	if after == before {
		return
	}
	w.switches++
	if w.weak.keepState { // as if worker id and counters were changed one after the other
		after.limit.Store(max(after.limit.Load(), before.limit.Load()))
		after.only.start(min(after.only.state.Load(), before.only.state.Load()&(sealed-1)))
	}
	w.weaken(p.g)
}

// ended makes calls return instead of waiting.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (w *world) issue(p *process) {
	for range 1 + w.r.IntN(3) {
		f, first, n, err := w.take(p)
		if err != nil { // the keeper renews when somebody waits, who tries again then
			w.renew(p)
			f, first, n, err = w.take(p)
		}
		w.noteOutcome(p, err)
		if err != nil {
			return
		}
		worker := p.g.compose(first, f.workerField) &^ p.g.compose(first, 0)
		if w.weak.noCarry {
			w.overflow(p.g, f, first, n)
		} else {
			w.issued[worker] = append(w.issued[worker], stretch{first, first + n - 1})
		}
		w.ids += n
	}
}

func (w *world) take(p *process) (f *leaseState, first, n int64, err error) {
	before := p.g.renewer.leaseState.Load()
	f, first, n, err = p.g.take(ended, 1+w.r.Int64N(2000))
	w.noteSwitch(p, before)
	return f, first, n, err
}

// overflow notes ids one by one, because what follows the last sequence is not
// the next tick of the same worker.
func (w *world) overflow(g *Generator, f *leaseState, first, n int64) {
	for s := first; s < first+n; s += max(n/8, 1) {
		id := g.compose(s, f.workerField)
		w.issued[0] = append(w.issued[0], stretch{id, id})
	}
}

func (w *world) check() error {
	if w.heldOut != nil {
		return w.heldOut
	}
	for worker, all := range w.issued {
		slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.first, b.first) })
		for i := 1; i < len(all); i++ {
			if all[i].first <= all[i-1].last {
				return fmt.Errorf("%w: states %d to %d and %d to %d of %d", errDuplicate, all[i-1].first, all[i-1].last, all[i].first, all[i].last, worker)
			}
		}
	}
	return nil
}

// lossy is the ledger over a bad network: a request may fail before it is
// executed, its reply may be lost, or it may be executed after its sender has
// given up.
type lossy struct{ w *world }

var errNetwork = errors.New("connection reset")

func (l *lossy) Take(ctx context.Context, c workerid.Claim) (e workerid.Entry, err error) {
	err = l.send(func() error { e, err = l.w.ledger.Take(ctx, c); return err })
	return e, err
}

func (l *lossy) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (ceiling int64, err error) {
	err = l.send(func() error { ceiling, err = l.w.ledger.Renew(context.WithoutCancel(ctx), c, e); return err })
	return ceiling, err
}

func (l *lossy) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	return l.send(func() error { return l.w.ledger.Return(context.WithoutCancel(ctx), c, e, end) })
}

func (l *lossy) send(request func() error) error {
	switch n := l.w.r.IntN(100); {
	case n < 4:
		return errNetwork
	case n < 8:
		l.w.lost++
		_ = request()
		return errNetwork
	case n < 12:
		l.w.late, l.w.tally.late = append(l.w.late, func() { _ = request() }), l.w.tally.late+1
		return errNetwork
	}
	return request()
}
