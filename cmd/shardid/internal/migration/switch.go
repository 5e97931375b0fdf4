// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
)

// switched is the result of a switch as JSON.
type switched struct {
	Job        string  `json:"job"`
	PauseMS    float64 `json:"pause_ms"`
	OverMS     float64 `json:"over_ms"` // above --max-pause
	Drained    int64   `json:"drained"`
	Epoch      int64   `json:"epoch"`
	WasAlready bool    `json:"was_already"`
}

func (m *Migration) newCutover() *cobra.Command {
	return m.newSwitch("cutover", "Make the shards serve", `Cutover applies the last changes while writers wait, closes the source's tables
by renaming them to <name>_old, and changes the route. When writers would wait for
longer than --max-pause it gives up: everything is as before, and it may be tried
again. It renames only when that fits into the rest of the pause, by a rehearsal on a table of
its own. When the renames take longer after all, the switch is finished or undone, whichever is shorter,
and says so. Rollback undoes it until finalize. It warns when nobody has read
what preview prints.

A runner stops for it and continues afterwards, then from the shards back to the
source.`, (*migrate.Job).Cutover)
}

func (m *Migration) newRollback() *cobra.Command {
	return m.newSwitch("rollback", "Make the source serve again, with everything that was written to the shards", `Rollback applies the last changes to the source while writers wait, closes the shards by
renaming them to <name>_sealed, opens the source's tables and changes the route. It
gives up after --max-pause as cutover does.`, (*migrate.Job).Rollback)
}

// seedAgain is printed because processes hold ids that the source will give from now on.
const (
	seedAgain = `The source numbers its rows again, above the highest id of the generators. Before
another cutover: shardid migrate seed, and then restart every process of the application.`
	generatorsGoOn = `Generators continue to make the ids, on the source, too: processes hold some that they
have not used yet. Programs that insert there without the plugin must use these generators.`
)

// sayWhoNumbers prints where ids come from after a rollback.
func (o *Operation) sayWhoNumbers(ctx context.Context) error {
	if err := o.readRoutes(ctx); err != nil {
		return err
	}
	text := seedAgain
	if o.returned[o.cfg.Tables[0].Name] {
		text = generatorsGoOn
	}
	o.sayf("%s", text)
	return nil
}

func (m *Migration) newSwitch(use, short, long string, do func(*migrate.Job, context.Context, time.Duration) (migrate.Switch, error)) *cobra.Command {
	maxPause := 200 * time.Millisecond
	cmd := m.verb(use, short, long, func(ctx context.Context, o *Operation) error {
		if err := o.readRoutes(ctx); err != nil {
			return err
		}
		if use == "cutover" {
			o.warnUnseen(ctx)
			o.warn(o.missingCopies(ctx))
		}
		var done migrate.Switch
		err := o.leading(ctx, func() (err error) {
			done, err = do(o.job, ctx, maxPause)
			return err
		})
		if err != nil {
			return err
		}
		if err := o.printSwitch(ctx, done); err != nil || use != "rollback" {
			return err
		}
		return o.sayWhoNumbers(ctx)
	})
	cmd.Flags().Var(input.Between(time.Millisecond, time.Hour, &maxPause), "max-pause", "how long writers may wait")
	return cmd
}

func (o *Operation) printSwitch(ctx context.Context, done migrate.Switch) error {
	p, err := o.job.Progress(ctx)
	if err != nil {
		return err
	}
	out := switched{p.Job, milliseconds(done.Pause), milliseconds(done.Over), done.Drained, done.Epoch, done.Pause == 0}
	return o.print(out, func(w io.Writer) error {
		text := fmt.Sprintf("job %s is %s; writers waited %.0f ms, and %s applied meanwhile\n", p.Job, p.Phase, out.PauseMS, Applied(done.Drained))
		if out.WasAlready {
			text = fmt.Sprintf("job %s is %s; there was nothing left to switch\n", p.Job, p.Phase)
		}
		if done.Over > 0 {
			text += fmt.Sprintf("warning: that is %.0f ms above --max-pause: the renames took longer than their rehearsal, and undoing them would have taken even longer\n", out.OverMS)
		}
		_, err := io.WriteString(w, text)
		return err
	})
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Applied says how many changes were applied.
func Applied(changes int64) string {
	if changes == 1 {
		return "1 change was"
	}
	return term.Number(changes) + " changes were"
}

func (m *Migration) newFinalize() *cobra.Command {
	return m.newEnd("finalize", "End the possibility of a rollback", `Finalize drops the triggers and logs of the job. The source's tables stay as
<name>_old, closed, until somebody drops them. It cannot be undone: every instance of
the application must have used the shards for as long as you need to be certain.`, "the job is finalized: the shards serve for good", (*migrate.Job).Finalize)
}

func (m *Migration) newAbort() *cobra.Command {
	return m.newEnd("abort", "End the job and remove its work", `Abort drops the triggers and logs of a job that was not switched, or was rolled
back, and empties the shards. The source is not touched. After a rollback the shards
keep the name <name>_sealed, so that an instance of the application that was idle
since the cutover cannot write to them.`, "the job was aborted: the source serves, and the copied rows are deleted", (*migrate.Job).Abort)
}

// newEnd makes a verb that needs --yes.
func (m *Migration) newEnd(use, short, long, done string, do func(*migrate.Job, context.Context) error) *cobra.Command {
	var yes bool
	cmd := m.verb(use, short, long, func(ctx context.Context, o *Operation) error {
		if !yes {
			return input.Errorf("%s cannot be undone; confirm it with --yes", use)
		}
		p, err := o.job.Progress(ctx)
		if err != nil {
			return err
		}
		if err := o.leading(ctx, func() error { return do(o.job, ctx) }); err != nil {
			return err
		}
		text := done
		if p.Phase == migrate.PhaseNone {
			text = fmt.Sprintf("there is no job %s: it was never begun, or was aborted before; the source serves", p.Job)
		}
		o.sayf("%s", text)
		return nil
	})
	cmd.Flags().BoolVar(&yes, "yes", false, "do it; it cannot be undone")
	return cmd
}

func (m *Migration) newPause() *cobra.Command {
	return m.verb("pause", "Stop the copy of all runners until resume", `Pause stops the copy of all runners. They continue to follow changes, so that no backlog
grows.`,
		func(ctx context.Context, o *Operation) error {
			p, err := o.job.Progress(ctx)
			if err != nil {
				return err
			}
			done := "runners copy no more until resume; they check four times a second"
			switch p.Phase { //nolint:exhaustive // runners copy or follow in the others
			case migrate.PhaseNone:
				done = fmt.Sprintf("job %s has not begun; when it does, its runners copy nothing until resume", p.Job)
			case migrate.PhaseFinalized:
				o.sayf("job %s is finalized: there is nothing to pause", p.Job)
				return nil
			}
			return o.said(o.job.Pause(ctx), done)
		})
}

func (m *Migration) newResume() *cobra.Command {
	return m.verb("resume", "Undo pause", "Resume lets the runners copy again.",
		func(ctx context.Context, o *Operation) error {
			return o.said(o.job.Resume(ctx), "runners copy again")
		})
}

// said prints the result, unless there was an error.
func (o *Operation) said(err error, what string) error {
	if err == nil {
		o.sayf("%s", what)
	}
	return err
}

const (
	askFor      = 30 * time.Second // renewed while the step takes
	askAgain    = 10 * time.Second
	stopTimeout = 15 * time.Second // how long to wait for a runner to stop
)

// leading asks the runner to stop, and calls do, which leads the job meanwhile.
func (o *Operation) leading(ctx context.Context, do func() error) (err error) {
	if err := o.job.Ask(ctx, askFor); err != nil {
		return err
	}
	asking, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { o.keepAsking(asking) })
	defer func() {
		stop()
		wg.Wait()
		err = errors.Join(err, o.job.Ask(context.WithoutCancel(ctx), 0))
	}()
	for {
		err := do()
		// A runner may still lead, or may have begun to lead before it read the request.
		stillLed := errors.Is(err, migrate.ErrLocked) || errors.Is(err, migrate.ErrFenced)
		if !stillLed || time.Since(o.begun) > stopTimeout {
			return err
		}
		if err := PauseFor(ctx, LookEvery); err != nil {
			return err
		}
	}
}

// keepAsking renews the request; if it stops, the runner continues when the time has
// passed.
func (o *Operation) keepAsking(ctx context.Context) {
	for PauseFor(ctx, askAgain) == nil {
		_ = o.job.Ask(ctx, askFor) // repeated soon
	}
}

// PauseFor waits for d, or returns the error of ctx if that ends first.
func PauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
