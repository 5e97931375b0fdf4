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
writes every two seconds, and when it ends; after 15 seconds of silence it counts as dead. When a
command such as cutover has made it stop, a runner that waits leads again within 5 seconds. With --check it exits
with 6 when the job needs a runner and none is running, for monitoring.`,
		func(ctx context.Context, o *Operation) error {
			s, err := o.job.Status(ctx)
			for again := check; again && err == nil && s.NeedsRunner(); again = betweenRunners(s) && time.Since(o.begun) <= takeOver {
				if err = PauseFor(ctx, 4*LookEvery); err == nil { // another one may be about to lead, or the same after a cutover
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

// takeOver is how long a runner that waits may take to lead again when another command has ended. It looks four times a second.
const takeOver = 5 * time.Second

// betweenRunners reports whether no runner leads because a command has made it stop, so that a runner which waits leads
// again soon.
func betweenRunners(s migrate.Status) bool {
	if !s.NeedsRunner() || s.Changed != "" || s.Request == nil {
		return false
	}
	ended := s.Runner == nil || s.Runner.Does == "" && s.Runner.Silent >= *s.Request // by the command, not by a runner that led since
	return *s.Request < 0 || ended && *s.Request < int64(takeOver.Seconds())
}

// lastSwitch is cutover or rollback if nobody has led the job since it, otherwise "".
func lastSwitch(s migrate.Status) string {
	if s.Runner == nil || s.Runner.Does != "" || len(s.Switches) == 0 || s.Switches[0].Epoch != s.Runner.Epoch {
		return ""
	}
	return s.Switches[0].Way
}

func ended(what string, r *migrate.Runner) string {
	return fmt.Sprintf("%s of %s pid %d, which ended %s ago", what, r.Host, r.PID, seconds(r.Silent))
}

// lastCommand says for what a runner waits that will lead.
func lastCommand(s migrate.Status) string {
	if *s.Request < 0 {
		return fmt.Sprintf("a command has asked to lead the job; a runner that waits leads again when it has ended, or in %s if it was killed", seconds(-*s.Request))
	}
	text := "another command has ended"
	if way := lastSwitch(s); way != "" {
		text = "the last to lead was the " + ended(way, s.Runner)
	}
	return text + "; a runner that waits takes over within " + seconds(int64(takeOver.Seconds()))
}

func (s StatusShown) runner(style term.Style) string {
	r := s.Runner
	switch {
	case betweenRunners(s.Status):
		return style.Yellow("between runners") + ": " + lastCommand(s.Status)
	case r == nil && s.NeedsRunner():
		return style.Red("no runner") + ": none has written yet"
	case r == nil:
		return "no runner"
	case !r.Leads:
		text := fmt.Sprintf(": last heard from %s pid %d, %s ago", r.Host, r.PID, seconds(r.Silent))
		if way := lastSwitch(s.Status); way != "" {
			text = ": none has led since the " + ended(way, r)
		}
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
