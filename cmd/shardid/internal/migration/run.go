// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/throttle"
)

// LookEvery is how often a runner reads what operators have requested.
const LookEvery = 250 * time.Millisecond

// usualChunk is the default number of rows that are copied at once.
const usualChunk = 4000

// runFlags are the flags of run.
type runFlags struct {
	plan         string
	dry, once    bool
	noWait       bool
	interval     time.Duration
	throttleFile string
	maxThreads   int
	maxThrottle  time.Duration
	maxLag       time.Duration
	rate         int64

	maxCommitLatency time.Duration
}

func (m *Migration) newRun() *cobra.Command {
	f := runFlags{interval: 10 * time.Second, maxThrottle: time.Hour, maxLag: 5 * time.Second}
	cmd := m.verb("run", "Copy the tables and follow their changes", `Run creates what the job needs, copies the tables and follows their changes until it
is interrupted: before the switch from the source to the shards, after it from the shards to the source. Any
number of runners may be started: one leads, the others wait and take over. Run
may be killed at any moment and started again. Once a job has begun, run
does not end because a database is unreachable or locks are held: it tries again, for as long
as it takes.

Before each chunk it waits while the job is paused, while the file of --throttle-file
exists, while the source has more than --max-threads threads running or commits for
longer than --max-commit-latency, and while a replica is more than --max-lag behind. The
replicas are those that "replicas" of the file names. One that does not answer, or whose
replication is stopped, counts as behind. --rate is the most rows that are copied in a
second, on average. Changes are followed in any case. Run prints why it waits, and when
it continues.

It shows a bar on a terminal and a line per --interval elsewhere, on stderr; with
--json an object per line on stdout.`,
		func(ctx context.Context, o *Operation) error {
			if err := o.checkPlan(ctx, f.plan); err != nil {
				return err
			}
			if f.dry {
				return o.printStatements(ctx)
			}
			if o.Cmd.Flags().Changed("max-lag") && len(o.replicas) == 0 {
				return input.Errorf("--max-lag: the file of --config names no \"replicas\" of the source; name them there")
			}
			r, err := newRunner(o, f)
			if err != nil {
				return err
			}
			return r.run(ctx)
		})
	flags := cmd.Flags()
	dryRun(cmd, &f.dry)
	flags.StringVar(&f.plan, "plan", "", "a file of plan --out, which must still be valid")
	flags.BoolVar(&f.once, "once", false, "end when all rows are copied and changes are caught up with, and print whether some wait")
	flags.BoolVar(&f.noWait, "no-wait", false, "end with 4, or with 5, when another runner leads, instead of waiting")
	flags.Var(input.Between(time.Millisecond, 24*time.Hour, &f.interval), "interval", "time between two lines of progress")
	flags.StringVar(&f.throttleFile, "throttle-file", "", "copy nothing while this file exists")
	flags.Var(input.Between(1, 100_000, &f.maxThreads), "max-threads", "copy nothing while the source has more threads running (default no limit)")
	flags.Var(input.Between(time.Second, 24*time.Hour, &f.maxLag), "max-lag", "copy nothing while a replica is more behind")
	flags.Var(input.Between(time.Microsecond, time.Hour, &f.maxCommitLatency), "max-commit-latency", "copy nothing while commits on the source take longer (default no limit)")
	flags.Var(input.Between(1, 1_000_000_000, &f.rate), "rate", "rows to copy in a second, at most (default no limit)")
	flags.Var(input.Between(time.Millisecond, 30*24*time.Hour, &f.maxThrottle), "max-throttle", "exit with 7 when throttled for longer without a break")
	return cmd
}

func (o *Operation) printStatements(ctx context.Context) error {
	p, err := o.job.Plan(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.Cmd.OutOrStdout(), statements(p.Statements))
	return err
}

// Runner runs a job until it ends.
type Runner struct {
	*Operation

	flags   runFlags
	steer   atomic.Pointer[migrate.Steering] // as last read
	copied  atomic.Int64                     // rows copied
	blocked atomic.Bool                      // by a transaction of others; printed once
	led     atomic.Bool                      // has led since the last failed attempt
	waits   bool                             // for another runner; printed once
	room    bool                             // has ended its turn so that another command can lead
	paused  bool                             // has said what that command does
	tried   bool                             // has tried to lead: the databases were reachable
	failed  int                              // failed attempts since this runner last led the job
	trouble Trouble

	throttle *throttle.Throttle
	began    atomic.Bool // the job has begun: this runner has read or stored its phase

	caughtUp bool // with --once: the job has caught up
}

func newRunner(o *Operation, f runFlags) (*Runner, error) {
	r := &Runner{Operation: o, flags: f}
	r.steer.Store(&migrate.Steering{})
	if err := r.newThrottle(); err != nil {
		return nil, err
	}
	cfg := o.cfg
	if f.rate > 0 && o.rows == 0 { // smaller chunks keep the rate more even
		cfg.ChunkRows = int(min(f.rate, usualChunk))
	}
	cfg.Throttle, cfg.Cause = r.rest, r.throttle.Cause
	cfg.Observe = r.Observe
	var err error
	o.job, err = migrate.New(cfg)
	return r, err
}

// Observe prints a message for steps that users have to know about, once each.
func (r *Runner) Observe(s migrate.Step) {
	switch s.Name {
	case migrate.StepBegun:
		r.began.Store(true)
	case migrate.StepStored:
		r.copied.Add(s.Rows)
		r.throttle.Copied(s.Rows)
	case migrate.StepLeading:
		r.led.Store(true)
		r.trouble.GoesOn(r.sayf)
	case migrate.StepWaiting:
		if s.Err != nil {
			r.trouble.Waits(r.sayf, s.Err, false)
		} else {
			r.trouble.GoesOn(r.sayf)
		}
	case migrate.StepBlocked:
		if !r.blocked.Swap(true) {
			r.sayf(Blocked, s.Table)
		}
	}
}

func (r *Runner) run(ctx context.Context) error {
	showing, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.show(showing) })
	defer wg.Wait()
	defer stop()
	for {
		done, err := r.turn(ctx)
		if err != nil || done {
			stop()
			wg.Wait() // wait for the last line of progress
			if r.caughtUp {
				return r.sayCaughtUp(ctx)
			}
			return err
		}
	}
}

// sayCaughtUp prints what a run with --once has done, and what is left.
func (r *Runner) sayCaughtUp(ctx context.Context) error {
	p, err := r.job.Progress(ctx)
	if err != nil {
		return err
	}
	did, verb := "all rows are copied, and all changes that were noted meanwhile", "cutover"
	if p.Phase == migrate.PhaseSwitched {
		did, verb = "all changes that were noted on the shards are copied back into the retired tables", "rollback"
	}
	if p.Backlog > 0 {
		did += fmt.Sprintf(", but %s: made since, or of a row that has to wait for another one, as a child does whose parent is missing, "+
			"or a row of which another has an equal value in a unique key; the next run tries again, and a %s names such a row", waiting(p), verb)
	}
	r.sayf("%s", did)
	return nil
}

// turn leads the job until another command wants to. done is true when there is nothing
// left to do. Once another runner leads the job, or this one has tried to lead it, turn
// does not end because a database is unreachable.
func (r *Runner) turn(ctx context.Context) (done bool, err error) {
	done, err = r.attempt(ctx)
	underWay := r.began.Load() || r.waits || r.tried
	if err != nil && ctx.Err() == nil && underWay && migrate.Transient(err) {
		return false, r.waitFor(ctx, err)
	}
	return done, err
}

// waitFor waits before the next attempt, twice as long each time and with jitter, so that
// runners of many jobs do not all connect at the moment when their server starts.
func (r *Runner) waitFor(ctx context.Context, cause error) error {
	if r.led.Swap(false) {
		r.failed = 0
	}
	r.failed++
	r.trouble.Waits(r.sayf, cause, true)
	wait := min(LongestWait, LookEvery<<min(r.failed, 10))
	return PauseFor(ctx, wait/2+rand.N(wait))
}

// Trouble is the cause for which a run waits, "" while it does not.
type Trouble struct {
	mu  sync.Mutex
	why string
}

// Waits says why the run waits, once, and again when an attempt ends for another reason.
func (t *Trouble) Waits(say func(format string, args ...any), cause error, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if why := cause.Error(); t.why == "" || ended && why != t.why {
		t.why = why
		say("waiting, and trying again: %s", why)
	}
}

// GoesOn says that the run waits no more.
func (t *Trouble) GoesOn(say func(format string, args ...any)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.why != "" {
		t.why = ""
		say("going on")
	}
}

// Blocked says that transactions of others keep a run from creating triggers.
const Blocked = "waiting for transactions on table %s to end, before triggers can be created on it; end long transactions"

// LongestWait is how long a runner waits for a database until it tries again, on average.
const LongestWait = 20 * time.Second

// attempt is one turn, which ends with the first error.
func (r *Runner) attempt(ctx context.Context) (done bool, err error) {
	if err := r.letOtherLead(ctx); err != nil {
		return false, err
	}
	if done, err := r.Over(ctx); err != nil || done {
		return done, err
	}
	asked := r.steer.Load().Asked
	err = r.lead(ctx)
	r.tried = true
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, r.next(ctx, err, asked)
	}
	r.caughtUp = r.flags.once
	return r.flags.once, nil
}

// lead runs and follows the job until another command wants to lead.
func (r *Runner) lead(ctx context.Context) error {
	turn, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer end()
		r.watch(turn)
	})
	defer wg.Wait()
	defer end()
	if err := r.job.Run(turn); err != nil || r.flags.once {
		return err
	}
	return r.follow(turn)
}

// next returns nil when the error that ended a turn is no reason to end the run: another
// command has asked to lead since the turn began. On SQLite that command may have taken the
// lead before this runner read the request.
func (r *Runner) next(ctx context.Context, cause error, asked int64) error {
	if err := r.look(ctx); err != nil {
		return errors.Join(cause, err)
	}
	switch {
	case r.steer.Load().Asked != asked:
		r.makeRoom()
		return nil
	case !r.flags.noWait && (errors.Is(cause, migrate.ErrLocked) || errors.Is(cause, migrate.ErrFenced) && r.seesLeaders(ctx)):
		return r.standBy(ctx)
	}
	return cause
}

// seesLeaders reports whether a standby runner can detect that the leading one has ended. A
// server releases the lock of a leader with its connection. SQLite has no such lock: two
// runners would take the lead from each other forever.
func (r *Runner) seesLeaders(ctx context.Context) bool {
	server, err := dialect.Detect(ctx, r.cfg.Source)
	return err != nil || server.Name() != "sqlite" // an unreachable source is waited for
}

// follow returns at once when there is nothing to follow; Over then says why.
func (r *Runner) follow(ctx context.Context) error {
	r.waits = false
	p, err := r.job.Progress(ctx)
	if err != nil || p.Phase == migrate.PhaseFinalized {
		return err
	}
	return r.job.Follow(ctx)
}

// Over reports whether the job has ended.
func (r *Runner) Over(ctx context.Context) (bool, error) {
	p, err := r.job.Progress(ctx)
	room := r.room
	r.room, r.paused = room && err != nil, r.paused && err != nil
	switch {
	case err != nil:
		return false, err
	case p.Phase == migrate.PhaseFinalized:
		r.sayf("job %s is finalized; there is nothing left to do", p.Job)
		return true, nil
	case p.Phase != migrate.PhaseNone && p.Phase != migrate.PhaseAborted:
		r.began.Store(true)
		if room {
			r.sayf("going on: job %s is %s", p.Job, p.Phase)
		}
	case r.began.Load():
		r.sayf("job %s was aborted; run it again if that was a mistake", p.Job)
		return true, nil
	}
	return false, nil
}

func (r *Runner) standBy(ctx context.Context) error {
	if !r.waits {
		r.sayf("another runner leads the job; waiting to take over")
		r.waits = true
	}
	return r.lookAfter(ctx, 4*LookEvery)
}

// letOtherLead waits while another command wants to lead the job.
func (r *Runner) letOtherLead(ctx context.Context) error {
	for {
		if err := r.look(ctx); err != nil || !r.steer.Load().Wanted {
			return err
		}
		r.sayPaused()
		if err := r.lookAfter(ctx, LookEvery); err != nil {
			return err
		}
	}
}

// makeRoom notes, and says once, that this runner does not lead for a moment.
func (r *Runner) makeRoom() {
	if !r.room {
		r.room = true
		r.sayf("making room: another command is to lead the job for a moment")
	}
}

// sayPaused says what the command does for which this runner has made room, when it leads.
func (r *Runner) sayPaused() {
	if does := r.steer.Load().Leader; r.room && !r.paused && strings.HasPrefix(does, "switches ") {
		r.paused = true
		r.sayf("paused: the command that leads the job %s", does)
	}
}

// mendEvery is how often a standby runner checks for an unfinished switch whose runner has
// died, because writers are waiting meanwhile.
const mendEvery = 50 * time.Millisecond

// lookAfter waits for d, and finishes a switch whose runner has died meanwhile.
func (r *Runner) lookAfter(ctx context.Context, d time.Duration) error {
	for until := time.Now().Add(d); time.Now().Before(until); {
		mended, err := r.job.Mend(ctx)
		if mended {
			r.sayf("a command was killed during a switch; this runner has finished the switch")
		}
		rest := mendEvery
		if err != nil && ctx.Err() == nil { // a shard may be unreachable: it is retried
			r.sayf("a command was killed during a switch, and this runner cannot finish the switch yet: %v", err)
			rest = 4 * LookEvery
		}
		if err := PauseFor(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) look(ctx context.Context) error {
	steer, err := r.job.Steering(ctx)
	if err == nil {
		r.steer.Store(&steer)
	}
	return err
}

// watch reads what operators have requested until another command wants to lead. An
// unreachable source is reported by the run.
func (r *Runner) watch(ctx context.Context) {
	for PauseFor(ctx, LookEvery) == nil {
		if r.look(ctx) == nil && r.steer.Load().Wanted {
			r.makeRoom()
			return
		}
	}
}

// show writes lines of progress until ctx ends.
func (r *Runner) show(ctx context.Context) {
	l := newProgressLines(r)
	for {
		r.showNow(ctx, l)
		if PauseFor(ctx, l.every) == nil {
			continue
		}
		if r.caughtUp {
			r.showNow(context.WithoutCancel(ctx), l)
		}
		l.end()
		return
	}
}

// showNow shows nothing of a job that has not begun, except as JSON.
func (r *Runner) showNow(ctx context.Context, l *progressLines) {
	if p, err := r.job.Progress(ctx); err == nil && (l.json || p.Phase != migrate.PhaseNone) {
		l.show(p, r.copied.Load(), r.throttle.Cause())
	}
}

// rate formats the speed of the copy.
func rate(rows int64, since time.Duration) string {
	if rows == 0 || since <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s rows/s", term.Number(int64(float64(rows)/since.Seconds())))
}
