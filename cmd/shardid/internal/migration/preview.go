// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/route"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/schema/preview"
	"github.com/shardid/shardid/sharding"
)

func (m *Migration) newPreview() *cobra.Command {
	var log string
	var check bool
	var since time.Duration
	cmd := m.verb("preview", "Print which of the application's statements the shards will treat differently", `Preview prints the statements of the application that the shards will refuse, that
several of them will answer, and that need a query to other shards before: the worst
first, each without its values. The application's processes record them on the source
with package schema/preview, while the source still serves. Without such records, or in
addition, --log plans the statements of a file, one per line, or of MySQL's or
MariaDB's general log, by the columns that the source has now. A statement that names a
table which the source does not have may stay undecided.

It stores on the source that somebody has read this: cutover warns when nobody has, or when
statements that will be refused were found since. With --check it exits with 6 when a
statement will be refused, or when no statement is known. A statement that programs no longer
send stays known: --since 24h leaves out those that no program has sent in the last day.`,
		func(ctx context.Context, o *Operation) error { return o.preview(ctx, log, check, since) })
	cmd.Flags().StringVar(&log, "log", "", "plan the statements of this file, too; - for stdin")
	cmd.Flags().BoolVar(&check, "check", false, "end with 6 when a statement will be refused, or nothing is known")
	cmd.Flags().Var(input.Between(time.Second, 10*365*24*time.Hour, &since), "since", "only statements that were sent within this time, such as 24h (default all)")
	return cmd
}

// previewShown is the output of preview.
type previewShown struct {
	Job string `json:"job"`
	preview.Found
	Log *route.Report `json:"log,omitempty"` // the report on the file, nil without one

	since time.Duration // 0: all statements
}

func (o *Operation) preview(ctx context.Context, log string, check bool, since time.Duration) error {
	found, err := preview.Read(ctx, o.cfg.Source, o.jobName())
	if err != nil {
		return err
	}
	shown := previewShown{Job: o.jobName(), Found: found, since: since}
	if since > 0 {
		shown.Found = found.Within(since)
	}
	if log != "" {
		if shown.Log, err = o.planLog(ctx, log); err != nil {
			return err
		}
	}
	if err := o.print(shown, shown.print); err != nil {
		return err
	}
	if shown.known() {
		if err := preview.NoteLook(ctx, o.cfg.Source, shown.Job, found); err != nil {
			return err
		}
	}
	switch refused := shown.refused(); {
	case check && !shown.known():
		return command.WithCode(errors.New("nothing is known of the application's statements"), command.MigrateNotReady)
	case check && refused > 0:
		advice := ""
		if since == 0 && shown.Refused() > 0 {
			advice = "; if programs have been changed since, --since 1h leaves out what was last sent earlier"
		}
		return command.WithCode(fmt.Errorf("the shards will refuse %d of the statements%s", refused, advice), command.MigrateNotReady)
	case check && shown.Log != nil && len(shown.Log.Undecided)+len(shown.Log.Unbound) > 0:
		return command.WithCode(errors.New("statements of the log are undecided"), command.MigrateNotReady)
	}
	return nil
}

func (o *Operation) jobName() string { return cmp.Or(o.cfg.Name, o.cfg.Tables[0].Name) }

// planLog plans the statements of a file for the time after the switch.
func (o *Operation) planLog(ctx context.Context, name string) (*route.Report, error) {
	layout, err := layoutfile.Read(o.Config)
	if err != nil {
		return nil, err
	}
	r, err := layout.Router(layout.Unopened())
	if err != nil {
		return nil, err
	}
	by, err := route.By(ctx, r, o.cfg.Source)
	if err != nil {
		return nil, err
	}
	report, err := by.Log(name, o.Cmd.InOrStdin())
	return &report, err
}

// known reports whether any statement is known.
func (s previewShown) known() bool { return s.Recorded != nil || s.Log != nil && s.Log.Statements > 0 }

func (s previewShown) refused() int64 {
	n := s.Refused()
	if s.Log != nil {
		n += int64(len(s.Log.Refused))
	}
	return n
}

func (s previewShown) print(w io.Writer) error {
	style := term.StyleFor(w)
	var b strings.Builder
	switch {
	case s.Recorded == nil && s.since > 0:
		fmt.Fprintf(&b, "no process has recorded its statements in the last %s: see that programs run with a preview.Recorder, or give a longer --since\n", s.since)
	case s.Recorded == nil:
		b.WriteString("no process has recorded its statements: start a preview.Recorder in the application, or give the server's log with --log\n")
	default:
		fmt.Fprintf(&b, "recorded by the application, last at %s: %s\n", s.Recorded.Format(time.DateTime+" MST"), s.summary(style))
		for _, one := range s.Statements {
			b.WriteString(previewLine(style, one))
		}
	}
	if s.Log != nil {
		b.WriteString("\nin the log: " + s.Log.Text())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// summary counts the statements by outcome.
func (s previewShown) summary(style term.Style) string {
	refused := s.Refused()
	text := fmt.Sprintf("%d will be refused", refused)
	if refused > 0 {
		text = style.Red(text)
	}
	return fmt.Sprintf("%s, %d will be executed differently", text, int64(len(s.Statements))-refused)
}

func previewLine(style term.Style, s preview.Statement) string {
	becomes := s.Becomes
	if s.Times > 1 { // a statement is counted with all of its values, which may lead to other shards
		becomes += ", at least with some values"
	}
	if s.Change == sharding.WillBeRefused {
		becomes = style.Red(becomes)
	}
	text := fmt.Sprintf("\n%7s times, last at %s: %s\n    %s\n", term.Number(s.Times), s.Seen.Format(time.DateTime+" MST"), becomes, route.Shortened(s.Text))
	if s.Reason != "" {
		text += "    " + s.Reason + "\n"
	}
	return text
}

// warnUnseen warns before a switch when nobody has read which statements the shards will
// refuse.
func (o *Operation) warnUnseen(ctx context.Context) {
	if p, err := o.job.Progress(ctx); err == nil && (p.Phase == migrate.PhaseSwitched || p.Phase == migrate.PhaseFinalized) {
		return // the shards refuse them already
	}
	found, err := preview.Read(ctx, o.cfg.Source, o.jobName())
	look := "run: " + o.command("preview")
	switch {
	case err != nil:
		o.sayf("warning: it is unknown which statements the shards will refuse: %v", err)
	case found.Looked == nil && found.Recorded == nil:
		o.sayf("warning: nobody has checked which statements the shards will refuse; %s", look)
	case found.Unseen == 0:
	case found.Looked == nil:
		o.sayf("warning: nobody has checked the %s of the application that the shards will refuse; %s", term.Count(found.Unseen, "statement"), look)
	default:
		were := "were"
		if found.Unseen == 1 {
			were = "was"
		}
		o.sayf("warning: %s %s found since the last check, at %s; %s", term.Count(found.Unseen, "refused statement"), were, found.Looked.Format(time.DateTime+" MST"), look)
	}
}
