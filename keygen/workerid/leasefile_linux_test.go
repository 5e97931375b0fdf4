// SPDX-License-Identifier: Apache-2.0

package workerid_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// switched is a ledger that can be out of reach.
type switched struct {
	workerid.Ledger
	err error // nil while it is there
}

func (s *switched) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	if s.err != nil {
		return workerid.Entry{}, s.err
	}
	return s.Ledger.Take(ctx, c)
}

func (s *switched) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (int64, error) {
	if s.err != nil {
		return 0, s.err
	}
	return s.Ledger.Renew(ctx, c, e)
}

func (s *switched) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	if s.err != nil {
		return s.err
	}
	return s.Ledger.Return(ctx, c, e, end)
}

var errDown = errors.New("connection refused")

func newSwitched() *switched {
	return &switched{Ledger: keygentest.NewMemoryLedger(time.Now)}
}

func remembering(t *testing.T, l workerid.Ledger, file string) *workerid.Leased {
	t.Helper()
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "orders", File: file})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func remember(t *testing.T, l workerid.Ledger, file string) keygen.Window {
	t.Helper()
	lease, err := remembering(t, l, file).Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	return lease.(keygen.Window)
}

func TestAProcessThatRestartsWithoutTheDatabaseGoesOnWithWhatIsLeftOfItsLease(t *testing.T) {
	l, file := newSwitched(), filepath.Join(t.TempDir(), "lease")
	former := remember(t, l, file)
	if former.Ceiling() > former.NotBefore()+10_100 || former.Term() != 10*time.Second {
		t.Errorf("up to %d of a piece from %d, for %v", former.Ceiling(), former.NotBefore(), former.Term())
	}
	l.err = errDown
	workerid.Kill(former)
	next := remember(t, l, file)
	if next.ID() != former.ID() || next.NotBefore() != former.Ceiling() || next.Ceiling() <= next.NotBefore() {
		t.Errorf("worker id %d up to %d, then %d from %d to %d", former.ID(), former.Ceiling(), next.ID(), next.NotBefore(), next.Ceiling())
	}
	l.err = nil
	if ceiling, err := next.Renew(t.Context()); err != nil || ceiling < next.NotBefore() {
		t.Errorf("renewed once the database was back: %d, %v", ceiling, err)
	}
}

// mute is a ledger that gives no answer to Take once it is mute.
type mute struct {
	workerid.Ledger
	mute atomic.Bool
}

func (l *mute) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	if l.mute.Load() {
		<-ctx.Done()
		return workerid.Entry{}, ctx.Err()
	}
	return l.Ledger.Take(ctx, c)
}

func TestAProcessThatRestartsWhileTheDatabaseDoesNotAnswerGoesOnWithWhatIsLeftOfItsLease(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lease")
	layout := keygen.Twitter()
	layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before synctest's clock begins
	for _, term := range []time.Duration{time.Second, 30 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ledger := &mute{Ledger: keygentest.NewMemoryLedger(time.Now)}
			cfg := workerid.LeasedConfig{Ledger: ledger, Namespace: "orders", File: file, Term: term}
			acquire := func() (keygen.Window, error) {
				a, err := workerid.NewLeased(cfg)
				if err != nil {
					t.Fatal(err)
				}
				lease, err := a.Acquire(context.Background(), layout)
				if err != nil {
					return nil, err
				}
				return lease.(keygen.Window), nil
			}
			former, err := acquire()
			if err != nil {
				t.Fatal(err)
			}
			workerid.Kill(former)
			ledger.mute.Store(true)
			begin := time.Now()
			next, err := acquire()
			if err != nil || next.ID() != former.ID() || next.Ceiling() <= max(next.NotBefore(), layout.Tick(time.Now())) {
				t.Errorf("term %v: %v, after %v", term, err, time.Since(begin))
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("term %v: it took %v", term, took)
			}
			workerid.Kill(next)
		})
	}
}

func TestALeaseIsRenewedWhileTheDatabaseDoesNotAnswerAnotherGeneratorOfItsProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lease")
	layout := keygen.Twitter()
	layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before synctest's clock begins
	synctest.Test(t, func(t *testing.T) {
		l := &mute{Ledger: keygentest.NewMemoryLedger(time.Now)}
		a := remembering(t, l, file)
		first, err := a.Acquire(t.Context(), layout)
		if err != nil {
			t.Fatal(err)
		}
		l.mute.Store(true)
		var second sync.WaitGroup
		second.Go(func() {
			if _, err := a.Acquire(context.Background(), layout); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("another lease: %v", err)
			}
		})
		time.Sleep(4 * time.Second)
		ceiling, err := first.(keygen.Window).Renew(t.Context())
		if err != nil || ceiling <= first.NotBefore()+10_000 {
			t.Errorf("renewed to %d from %d: %v", ceiling, first.NotBefore(), err)
		}
		second.Wait()
		workerid.Kill(first.(keygen.Window))
	})
}

func TestALeaseInAFileIsNeverUsedBeyondWhatTheDatabaseKnows(t *testing.T) {
	l, file := newSwitched(), filepath.Join(t.TempDir(), "lease")
	w := remember(t, l, file)
	end := w.NotBefore() + 30_000
	l.err = errDown
	var err error
	for restarts := 0; err == nil; restarts++ {
		workerid.Kill(w)
		var lease keygen.Lease
		if lease, err = remembering(t, l, file).Acquire(t.Context(), keygen.Twitter()); err == nil {
			if w = lease.(keygen.Window); w.Ceiling() > end || w.NotBefore() >= end || restarts > 5 {
				t.Fatalf("restart %d: from %d to %d, and the database has %d", restarts, w.NotBefore(), w.Ceiling(), end)
			}
		}
	}
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "used up") {
		t.Errorf("%v", err)
	}
}

func TestALeaseInAFileIsResumedFromItsOwnFileOnlyAndOnlyInAnOutage(t *testing.T) {
	l, dir := newSwitched(), t.TempDir()
	file := filepath.Join(dir, "lease")
	workerid.Kill(remember(t, l, file))
	try := func(file string, layout keygen.Layout) error {
		_, err := remembering(t, l, file).Acquire(t.Context(), layout)
		return err
	}
	other := keygen.Twitter()
	other.Epoch = other.Epoch.Add(time.Hour)
	l.err = errDown
	if err := try(file, other); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("another layout: %v", err)
	}
	copied := filepath.Join(dir, "copy")
	copyFile(t, file, copied)
	if err := try(copied, keygen.Twitter()); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "written last") {
		t.Errorf("a copy of the file: %v", err)
	}
	copyFile(t, file+".lock", copied+".lock")
	if err := try(copied, keygen.Twitter()); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "copy") {
		t.Errorf("a copy of both files: %v", err)
	}
	if err := try(filepath.Join(dir, "none"), keygen.Twitter()); !errors.Is(err, errDown) {
		t.Errorf("no file: %v", err)
	}
	for _, answer := range []error{keygen.ErrNoWorker, &keygen.SetupError{Err: errors.New("no such table"), Cure: "create it"}} {
		if l.err = answer; !errors.Is(try(file, keygen.Twitter()), answer) {
			t.Errorf("resumed though the ledger said %v", answer)
		}
	}
	l.err = errDown
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try(file, keygen.Twitter()); !errors.Is(err, workerid.ErrRecord) || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("half a file: %v", err)
	}
}

func TestAReadOnlyServerIsAnOutageToTheFileOfALease(t *testing.T) {
	l, dir := newSwitched(), t.TempDir()
	file := filepath.Join(dir, "lease")
	former := remember(t, l, file)
	workerid.Kill(former)
	l.err = &keygen.SetupError{Err: keygen.ErrReadOnly, Cure: "connect to the primary"}
	if next := remember(t, l, file); next.ID() != former.ID() || next.NotBefore() < former.Ceiling() {
		t.Errorf("%d from %d after %d up to %d", next.ID(), next.NotBefore(), former.ID(), former.Ceiling())
	}
	_, err := remembering(t, l, filepath.Join(dir, "other")).Acquire(t.Context(), keygen.Twitter())
	if !errors.As(err, new(*keygen.SetupError)) || !errors.Is(err, keygen.ErrReadOnly) {
		t.Errorf("without a lease in the file: %v", err)
	}
}

// Nobody knows the layout of such a file's lease, unless somebody says it.
func TestALeaseFileOfAVersionWithoutALayoutIsResumedOnlyIfFormerNamesIt(t *testing.T) {
	l, file := newSwitched(), filepath.Join(t.TempDir(), "lease")
	before := remember(t, l, file)
	workerid.Kill(before)
	if err := workerid.Before(file); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "layout") {
		t.Fatalf("%s, %v", text, err)
	}
	l.err = errDown
	_, err := remembering(t, l, file).Acquire(t.Context(), keygen.Twitter())
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "stores no layout") || !strings.Contains(err.Error(), "Former") {
		t.Errorf("%v", err)
	}
	stated, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: l, Namespace: "orders", File: file, Former: keygen.Twitter()})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := stated.Acquire(t.Context(), keygen.Twitter())
	if err != nil {
		t.Fatal(err)
	}
	if next := lease.(keygen.Window); next.ID() != before.ID() || next.NotBefore() != before.Ceiling() {
		t.Errorf("worker id %d from %d, after %d up to %d", next.ID(), next.NotBefore(), before.ID(), before.Ceiling())
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileOfALeaseIsHeldByOneProcessAtATime(t *testing.T) {
	l, file := newSwitched(), filepath.Join(t.TempDir(), "lease")
	w := remember(t, l, file)
	if _, err := remembering(t, l, file).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, workerid.ErrRecord) {
		t.Errorf("%v", err)
	}
	if err := w.Release(t.Context(), w.NotBefore()+1); err != nil {
		t.Fatal(err)
	}
	next := remember(t, l, file)
	if next.ID() != w.ID() || next.NotBefore() > w.NotBefore()+10_000 {
		t.Errorf("%d from %d, then %d from %d: it was not handed back", w.ID(), w.NotBefore(), next.ID(), next.NotBefore())
	}
	l.err = errDown
	workerid.Kill(next)
}

func TestAReturnedLeaseIsNotResumed(t *testing.T) {
	l, file := newSwitched(), filepath.Join(t.TempDir(), "lease")
	w := remember(t, l, file)
	if err := w.Release(t.Context(), w.NotBefore()+1); err != nil {
		t.Fatal(err)
	}
	l.err = errDown
	if _, err := remembering(t, l, file).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, errDown) || !strings.Contains(err.Error(), "contains no lease") {
		t.Errorf("%v", err)
	}
}

func TestAProcessThatEndsDuringAnOutageLeavesItsLeaseToTheNext(t *testing.T) {
	l, file := newSwitched(), filepath.Join(t.TempDir(), "lease")
	w := remember(t, l, file)
	l.err = errDown
	workerid.FailRenewal(t.Context(), w)
	end := w.NotBefore() + 5
	if err := w.Release(t.Context(), end); !errors.Is(err, errDown) || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
	if next := remember(t, l, file); next.ID() != w.ID() || next.NotBefore() != end {
		t.Errorf("%d from %d after %d up to %d", next.ID(), next.NotBefore(), w.ID(), end)
	}
}

// A generator that takes another worker id goes on with the old one's window, of
// which the file knows no more.
func TestTheFileFollowsTheNewestLeaseOfAProcess(t *testing.T) {
	l, file := newSwitched(), filepath.Join(t.TempDir(), "lease")
	a := remembering(t, l, file)
	take := func() keygen.Window {
		lease, err := a.Acquire(t.Context(), keygen.Twitter())
		if err != nil {
			t.Fatal(err)
		}
		return lease.(keygen.Window)
	}
	first, second := take(), take()
	l.err = errDown
	if lease, err := a.Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, errDown) {
		t.Errorf("a lease in use was given again: %v", lease)
	}
	if err := first.Release(t.Context(), first.NotBefore()); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
	workerid.Kill(second)
	if next := remember(t, l, file); next.ID() != second.ID() || next.NotBefore() != second.Ceiling() {
		t.Errorf("%d from %d after %d up to %d", next.ID(), next.NotBefore(), second.ID(), second.Ceiling())
	}
}

// The simulation runs processes on several machines, each with its own file,
// through kills, pauses, clocks that jump, outages of the ledger and copied
// files. The processes use all of their windows that they can.
func TestNoTickOfAWorkerIDIsUsedTwiceInAnySimulation(t *testing.T) {
	seeds := uint64(30)
	if effort.Soak() {
		seeds *= 10
	}
	var total tally
	for seed := uint64(1); seed <= seeds; seed++ {
		w := simulate(t, seed, weakness{})
		if err := w.check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		total.add(w.tally)
	}
	t.Logf("%+v", total)
	if total.resumed == 0 || total.refused == 0 || total.used == 0 {
		t.Errorf("something never happened: %+v", total)
	}
}

func TestTheSimulationSeesTheDuplicateWhenWhatIsSpentIsNotInTheFile(t *testing.T) {
	mustOverlap(t, weakness{unspent: true})
}

func TestTheSimulationSeesTheDuplicateWhenACopyPassesForTheFile(t *testing.T) {
	mustOverlap(t, weakness{copies: true})
}

// What the package's comment warns of.
func TestOlderContentsThatArePutBackIntoBothFilesAreNotNoticed(t *testing.T) {
	mustOverlap(t, weakness{putBack: true})
}

func mustOverlap(t *testing.T, weak weakness) {
	t.Helper()
	for seed := uint64(1); seed <= 20; seed++ {
		if simulate(t, seed, weak).check() != nil {
			return
		}
	}
	t.Errorf("nothing was used twice in 20 seeds with %+v", weak)
}

type weakness struct {
	unspent bool // the file says that nothing of the lease was used
	copies  bool // a copied file says that it was written where it is, and last
	putBack bool // older contents of the file and of its lock's are put back
}

type tally struct{ used, kills, resumed, refused int }

func (t *tally) add(o tally) {
	t.used += o.used
	t.kills += o.kills
	t.resumed += o.resumed
	t.refused += o.refused
}

type world struct {
	t        *testing.T
	r        *rand.Rand
	weak     weakness
	now      time.Time
	ledger   *switched
	backOn   time.Time // when an outage ends
	machines []*machine
	stays    map[int64][]stay
	tally
}

// machine has one process at most.
type machine struct {
	file   string
	skew   time.Duration
	paused time.Time
	lease  keygen.Window // nil when no process runs
	last   int64         // the highest tick used
	older  []byte        // what was in the file once
	lock   []byte        // and in its lock's
}

// stay is the ticks from..to of a worker id that a process used at once.
type stay struct{ from, to int64 }

const simTerm = time.Second

var simLayout = keygen.Layout{
	Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
	Fields: []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 2}, {Kind: keygen.Sequence, Bits: 10}},
}

func simulate(t *testing.T, seed uint64, weak weakness) *world {
	t.Helper()
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 0)), weak: weak, now: simLayout.Epoch.Add(1000 * time.Hour), stays: map[int64][]stay{}}
	w.ledger = &switched{Ledger: keygentest.NewMemoryLedger(func() time.Time { return w.now })}
	dir := inMemory(t)
	for i := range 5 { // for four worker ids
		w.machines = append(w.machines, &machine{file: filepath.Join(dir, fmt.Sprint("lease", i))})
	}
	for range 600 {
		w.step()
	}
	for _, m := range w.machines {
		w.kill(m)
	}
	return w
}

// inMemory returns a directory on no disk: what is simulated is what processes
// do, not what disks do.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "shardid") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.r.Int64N(int64(40 * time.Millisecond))))
	if w.ledger.err == nil && w.r.IntN(100) < 2 {
		w.ledger.err, w.backOn = errDown, w.now.Add(time.Duration(w.r.Int64N(int64(2*simTerm))))
	}
	if w.now.After(w.backOn) {
		w.ledger.err = nil
	}
	m := w.machines[w.r.IntN(len(w.machines))]
	switch {
	case w.now.Before(m.paused):
	case m.lease == nil:
		w.start(m)
	default:
		w.act(m)
	}
}

func (w *world) act(m *machine) {
	switch n := w.r.IntN(1000); {
	case n < 60:
		w.kill(m)
	case n < 80:
		_ = m.lease.Release(w.t.Context(), m.last+1)
		m.lease = nil
	case n < 100:
		m.paused = w.now.Add(time.Duration(w.r.Int64N(int64(3 * simTerm))))
	case n < 120:
		m.skew = time.Duration(w.r.Int64N(int64(2*simTerm))) - simTerm
	case n < 300:
		if _, err := m.lease.Renew(w.t.Context()); errors.Is(err, keygen.ErrWorkerLost) {
			w.kill(m)
		}
	default:
		w.use(m)
	}
}

func (w *world) kill(m *machine) {
	if m.lease != nil {
		w.kills++
		workerid.Kill(m.lease)
		m.lease = nil
	}
}

// use takes all ticks up to a little ahead of the clock, as generators that
// borrow do.
func (w *world) use(m *machine) {
	now := simLayout.Tick(w.now.Add(m.skew))
	from := max(m.last+1, m.lease.NotBefore())
	to := min(max(now, from)+200, m.lease.Ceiling()-1)
	if from <= to {
		w.used++
		w.stays[m.lease.ID()] = append(w.stays[m.lease.ID()], stay{from, to})
		m.last = to
	}
}

func (w *world) start(m *machine) {
	if w.ledger.err != nil && w.r.IntN(3) == 0 {
		w.copyTo(m)
	}
	if w.weak.putBack && m.older != nil {
		w.write(m.file, m.older)
		w.write(m.file+".lock", m.lock)
	}
	if w.weak.unspent {
		w.forge(m.file, func(_ string, notBefore *int64, _ *string) { *notBefore -= simTerm.Milliseconds() })
	}
	a, err := workerid.NewLeased(workerid.LeasedConfig{Ledger: w.ledger, Namespace: "sim", Term: simTerm, File: m.file})
	if err != nil {
		w.t.Fatal(err)
	}
	workerid.SetNow(a, func() time.Time { return w.now.Add(m.skew) })
	lease, err := a.Acquire(w.t.Context(), simLayout)
	switch {
	case err == nil && w.ledger.err != nil:
		w.resumed++
	case err != nil && strings.Contains(err.Error(), "not the one that was written last"):
		w.refused++
	}
	if err == nil {
		m.lease, m.last = lease.(keygen.Window), lease.NotBefore()-1
		m.older, m.lock = w.read(m.file), w.read(m.file+".lock")
	}
}

func (w *world) read(file string) []byte {
	content, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	return content
}

// write writes into a file that is there already.
func (w *world) write(file string, content []byte) {
	if err := os.WriteFile(file, content, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// copyTo puts a copy of another machine's file in the place of this one's.
func (w *world) copyTo(m *machine) {
	from := w.machines[w.r.IntN(len(w.machines))]
	if _, err := os.Stat(from.file); err != nil || from == m {
		return
	}
	copyFile(w.t, from.file, m.file)
	if w.weak.copies {
		here, err := workerid.PlaceOf(m.file)
		if err != nil {
			w.t.Fatal(err)
		}
		w.forge(m.file, func(_ string, _ *int64, fileIdentity *string) { *fileIdentity = here })
		w.write(m.file+".lock", w.read(from.file+".lock"))
	}
}

func (w *world) forge(file string, change func(string, *int64, *string)) {
	if err := workerid.Forge(file, change); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) check() error {
	for worker, all := range w.stays {
		slices.SortFunc(all, func(a, b stay) int { return cmp.Compare(a.from, b.from) })
		for i := 1; i < len(all); i++ {
			if all[i].from <= all[i-1].to {
				return fmt.Errorf("worker id %d: ticks %+v and %+v", worker, all[i-1], all[i])
			}
		}
	}
	return nil
}

// The file is written by the clock of the process, and the lease by the ledger's.
func TestAClockThatIsWrongForThreeSecondsBlocksNoProcessWithAFile(t *testing.T) {
	for _, off := range []time.Duration{20 * time.Second, time.Hour, -time.Hour} {
		file := filepath.Join(t.TempDir(), "lease")
		synctest.Test(t, func(t *testing.T) {
			var wrong atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(wrong.Load())) }
			a := remembering(t, keygentest.NewMemoryLedger(time.Now), file)
			workerid.SetNow(a, now)
			l := keygen.Twitter()
			l.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
			g, err := snowflake.New(t.Context(), snowflake.Config{Layout: l, Worker: a, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			for i := range int64(6000) { // a minute
				switch i {
				case 200:
					wrong.Store(int64(off))
				case 500:
					wrong.Store(0)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := g.Next(ctx); err != nil {
					t.Fatalf("off by %v, id %d: %v", off, i, err)
				}
				cancel()
				time.Sleep(10 * time.Millisecond)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
