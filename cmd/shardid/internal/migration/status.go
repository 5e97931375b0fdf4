// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
)

func (m *Migration) newStatus() *cobra.Command {
	var check bool
	cmd := m.verb("status", "Print the state of the job and of its runner, and what to do next", `Status writes nothing and disturbs no runner. It prints who leads the job and when it was
last heard, what it does and how fast, how far the shards are behind, why the copy is
throttled, the longest open transaction on the source, how long writers waited in the
last switches, and the next command. A runner
writes every two seconds, and when it ends; after 15 seconds of silence it counts as dead. With --check it exits
with 6 when the job needs a runner and none is running, for monitoring.`,
		func(ctx context.Context, o *Operation) error {
			s, err := o.job.Status(ctx)
			if err == nil && check && s.NeedsRunner() { // another one may be about to lead, or the same after a cutover
				if err = PauseFor(ctx, 4*LookEvery); err == nil {
					s, err = o.job.Status(ctx)
				}
			}
			if err != nil {
				return err
			}
			steps, err := nextSteps(ctx, o, s)
			if err != nil {
				return err
			}
			shown := StatusShown{Status: s, Steps: steps}
			if s.Phase == migrate.PhaseFinalized {
				if shown.Remains, err = leftovers(ctx, o, s.Job); err != nil {
					return err
				}
			}
			if err := o.print(shown, shown.print); err != nil {
				return err
			}
			if check && s.NeedsRunner() {
				return command.WithCode(errors.New("no runner is running for the job; do what status says"), command.MigrateNotReady)
			}
			return nil
		})
	cmd.Flags().BoolVar(&check, "check", false, "exit with 6 when the job needs a runner and none is running")
	return cmd
}

// StatusShown is the output of status.
type StatusShown struct {
	migrate.Status
	Steps

	Remains []Leftover `json:"remains,omitempty"` // by a finalized job
}

// command is a verb with the flags that identify the job. The source, whose name may have a
// password, is left to the environment.
func (o *Operation) command(verb string) string {
	words := []string{"shardid", "migrate", verb}
	o.Cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "config", "name":
			words = append(words, "--"+f.Name, f.Value.String())
		case "tables":
			words = append(words, "--tables", strings.Join(o.tables, ","))
		}
	})
	return strings.Join(words, " ")
}

func (s StatusShown) print(w io.Writer) error {
	style := term.StyleFor(w)
	shown := term.NewTable(style, "TABLE", ">ROWS", ">COPIED")
	for _, t := range s.Tables {
		shown.Row(t.Name, "~"+term.Number(t.Rows), fmt.Sprintf("%.1f %%", 100*t.Copied))
	}
	paused := ""
	if s.Paused {
		paused = style.Yellow(", paused")
	}
	stands := fmt.Sprintf("is %s%s, epoch %d, %s", style.Bold(string(s.Phase)), paused, s.Epoch, s.waiting())
	if s.Phase == migrate.PhaseNone {
		stands = "has not begun" + paused
	}
	_, err := fmt.Fprintf(w, "job %s %s\n%s\n%s", s.Job, stands, s.details(style), shown)
	return err
}

// waiting says how many changes wait.
func (s StatusShown) waiting() string {
	text := waiting(s.Progress)
	if s.Backlog > 0 && s.Lag != nil {
		text += ", the oldest for at most " + seconds(*s.Lag)
	}
	return text
}

// details are the lines between the state of the job and its tables.
func (s StatusShown) details(style term.Style) string {
	var b strings.Builder
	if s.Phase != migrate.PhaseNone && s.Phase != migrate.PhaseFinalized {
		b.WriteString(s.runner(style) + "\n")
	}
	if s.Changed != "" {
		fmt.Fprintf(&b, "%s: %s\n", style.Red("no runner can go on"), s.Changed)
	}
	switch {
	case s.Oldest != nil:
		fmt.Fprintf(&b, "longest open transaction on the source: connection %d, for %s\n", s.Oldest.Connection, seconds(s.Oldest.Seconds))
	case s.OldestUnknown != "":
		b.WriteString("longest open transaction on the source: " + s.OldestUnknown + "\n")
	}
	for _, p := range s.Switches[:min(len(s.Switches), shownSwitches)] {
		b.WriteString(pastSwitch(p) + "\n")
	}
	return b.String() + s.lines(style.Bold) + leftLines(s.Remains)
}

// shownSwitches is how many of the last switches are printed; --json has more.
const shownSwitches = 3

func pastSwitch(p migrate.PastSwitch) string {
	text := fmt.Sprintf("%s at %s: writers waited %.0f ms", p.Way, p.Ended.Format(time.DateTime+" MST"), p.PauseMS)
	if p.OverMS > 0 {
		text += fmt.Sprintf(", %.0f ms longer than allowed", p.OverMS)
	}
	if !p.Made {
		text += "; the switch was given up"
	}
	return text
}

func (s StatusShown) runner(style term.Style) string {
	r := s.Runner
	switch {
	case r == nil && s.NeedsRunner():
		return style.Red("no runner") + ": none has written yet"
	case r == nil:
		return "no runner"
	case !r.Leads:
		text := fmt.Sprintf(": last heard from %s pid %d, %s ago", r.Host, r.PID, seconds(r.Silent))
		switch {
		case s.Changed != "":
			return style.Red("no runner") + text
		case s.NeedsRunner():
			return style.Red("no runner") + text + "; start: " + s.Next
		}
		return "no runner" + text
	}
	text := fmt.Sprintf("runner: %s pid %d, heard %s ago, %s", r.Host, r.PID, seconds(r.Silent), r.Does)
	if r.Copied > 0 {
		text += fmt.Sprintf(", %s rows/s", term.Number(r.Copied))
	}
	if r.Followed > 0 {
		text += fmt.Sprintf(", %s changes/s", term.Number(r.Followed))
	}
	if s.Left != nil {
		text += ", about " + seconds(*s.Left) + " of copying left"
	}
	if r.Cause != "" {
		text += "\n" + style.Yellow("throttled: "+r.Cause)
	}
	return text
}

func seconds(n int64) string {
	if n < 120 {
		return fmt.Sprintf("%d s", n)
	}
	return (time.Duration(n) * time.Second).String()
}
