// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
)

func (m *Migration) newInspect() *cobra.Command {
	return m.verb("inspect", "Print what blocks the job", `Inspect checks the tables, their foreign keys, the servers' settings and the
user's rights, and writes nothing. It exits with 1 when something blocks the job.`,
		func(ctx context.Context, o *Operation) error {
			found, err := o.watchedInspect(ctx)
			if err != nil {
				return err
			}
			found = withWarnings(found, o.warnings(ctx))
			if err := o.print(found, func(w io.Writer) error { return printFindings(w, found) }); err != nil {
				return err
			}
			if migrate.Blocked(found) {
				return command.WithCode(errors.New("the findings marked block prevent the migration"), command.ExitUnclean)
			}
			return nil
		})
}

// withWarnings adds warnings behind the other ones, because the worst findings come first.
func withWarnings(found, warnings []migrate.Finding) []migrate.Finding {
	at := slices.IndexFunc(found, func(f migrate.Finding) bool { return f.Severity == migrate.Info })
	if at < 0 {
		at = len(found)
	}
	return slices.Insert(found, at, warnings...)
}

// watchedInspect shows how many rows were read.
func (o *Operation) watchedInspect(ctx context.Context) ([]migrate.Finding, error) {
	progress := term.NewProgress(o.Cmd.ErrOrStderr())
	progress.Begin("inspect", 0)
	defer progress.Abort("")
	var read int64
	job, err := o.observed(func(s migrate.Step) {
		if s.Name == migrate.StepInspected {
			read += s.Rows
			progress.Reach(read, s.Of)
		}
	})
	if err != nil {
		return nil, err
	}
	return job.Inspect(ctx)
}

// observed is the job with an observer of its steps.
func (o *Operation) observed(f func(migrate.Step)) (*migrate.Job, error) {
	cfg := o.cfg
	cfg.Observe = f
	return migrate.New(cfg)
}

// print writes v as JSON or as readable text.
func (o *Operation) print(v any, readable func(io.Writer) error) error {
	w := o.Cmd.OutOrStdout()
	if o.json {
		return command.WriteJSON(w, v)
	}
	return readable(w)
}

func printFindings(w io.Writer, found []migrate.Finding) error {
	style := term.StyleFor(w)
	var b strings.Builder
	for _, f := range found {
		place := f.Database
		if f.Table != "" {
			place += "/" + f.Table
		}
		fmt.Fprintf(&b, "%s %s: %s\n  %s %s\n", weight(style, f.Severity), style.Bold(place), f.Message, style.Dim("fix:"), f.Fix)
	}
	if len(found) == 0 {
		b.WriteString(style.Green("Nothing blocks the job.") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func weight(style term.Style, s migrate.Severity) string {
	switch s {
	case migrate.Block:
		return style.Red(string(s))
	case migrate.Warn:
		return style.Yellow(string(s))
	}
	return style.Dim(string(s))
}

func (m *Migration) newPlan() *cobra.Command {
	var out string
	cmd := m.verb("plan", "Print what the job will do, and its SQL", `Plan writes nothing to a database. With --out it writes a file that run --plan
compares: run refuses to begin or continue when the tables, the rule or the targets
differ from the plan.`,
		func(ctx context.Context, o *Operation) error {
			p, err := o.job.Plan(ctx)
			if err != nil {
				return err
			}
			o.warn(o.warnings(ctx))
			if out != "" {
				if err := writePlan(out, p); err != nil {
					return err
				}
			}
			return o.print(p, func(w io.Writer) error { return printPlan(w, p) })
		})
	cmd.Flags().StringVar(&out, "out", "", "file to write the plan to, as JSON")
	return cmd
}

func writePlan(path string, p migrate.Plan) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return input.Errorf("--out %s cannot be written; name a file in a directory that you may write to", path)
	}
	return nil
}

func printPlan(w io.Writer, p migrate.Plan) error {
	shown := term.NewTable(term.StyleFor(w), "TABLE", "KEY", "SHARDED BY", ">ROWS", "TARGETS")
	for _, t := range p.Tables {
		shown.Row(t.Name, t.Key, t.ShardBy, "~"+term.Number(t.Rows), strings.Join(t.Targets, " "))
	}
	_, err := fmt.Fprintf(w, "%s\nabout %d s of copying, %.1f MB on the shards\ndigest %s\n", shown, p.Seconds, float64(p.Bytes)/1e6, p.Digest)
	for _, part := range []struct {
		when string
		all  []migrate.Statement
	}{
		{"before run, by hand: foreign keys of other tables", p.Before}, {"by run", p.Statements},
		{"by cutover: triggers of the tables' own", p.AtSwitch}, {"after an abort, by hand", p.AfterAbort},
	} {
		if err == nil && len(part.all) > 0 {
			_, err = fmt.Fprintf(w, "\n-- %s\n%s", part.when, statements(part.all))
		}
	}
	return err
}

// statements lists the statements with the database of each.
func statements(all []migrate.Statement) string {
	var b strings.Builder
	last := ""
	for _, s := range all {
		if s.Database != last {
			fmt.Fprintf(&b, "-- on %s\n", s.Database)
			last = s.Database
		}
		b.WriteString(s.SQL + ";\n")
	}
	return b.String()
}

// checkPlan compares the job with an approved plan.
func (o *Operation) checkPlan(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return input.Errorf("--plan %s cannot be read; make it with shardid migrate plan --out", path)
	}
	var agreed migrate.Plan
	if err := json.Unmarshal(text, &agreed); err != nil {
		return input.Errorf("--plan %s is not a plan; make it with shardid migrate plan --out", path)
	}
	now, err := o.job.Plan(ctx)
	if err != nil {
		return err
	}
	if now.Digest != agreed.Digest || now.Job != agreed.Job {
		return command.WithCode(fmt.Errorf("the plan of job %s in %s has the digest %.12s…, and the tables, rules and targets of job %s have %.12s…; plan again, and have the changes approved",
			agreed.Job, path, agreed.Digest, now.Job, now.Digest), command.MigrateChanged)
	}
	return nil
}

func waiting(p migrate.Progress) string {
	if p.Backlog == 1 {
		return "1 change waits"
	}
	return term.Number(p.Backlog) + " changes wait"
}

func (m *Migration) newVerify() *cobra.Command {
	return m.verb("verify", "Compare every row with the shards", `Verify reads every row once, without a lock and while writers and the runner
continue. It exits with 1 when rows differ although no change of them is pending: they
are noted, and the runner writes them again; verify once more. It exits with 6 when
rows could not be compared yet. Only 0 says that all rows are equal.`,
		func(ctx context.Context, o *Operation) error {
			v, err := o.watchedVerify(ctx)
			if err != nil {
				return err
			}
			if err := o.print(v, func(w io.Writer) error { return printVerification(w, v) }); err != nil {
				return err
			}
			return verdict(v)
		})
}

// watchedVerify shows how many rows were compared.
func (o *Operation) watchedVerify(ctx context.Context) (v migrate.Verification, err error) {
	p, err := o.job.Progress(ctx)
	if err != nil {
		return v, err
	}
	var total int64
	for _, t := range p.Tables {
		total += int64(float64(t.Rows) * t.Copied)
	}
	progress := term.NewProgress(o.Cmd.ErrOrStderr())
	progress.Begin("verify", total)
	defer progress.Abort("")
	job, err := o.observed(func(s migrate.Step) {
		if s.Name == migrate.StepCompared {
			progress.Add(s.Rows)
		}
	})
	if err != nil {
		return v, err
	}
	return job.Verify(ctx)
}

func verdict(v migrate.Verification) error {
	switch {
	case v.Requeued > 0:
		return command.WithCode(fmt.Errorf("%s differ; the runner will write them again; verify once more", term.Count(v.Requeued, "row")), command.ExitUnclean)
	case !v.Complete:
		return command.WithCode(errors.New("all rows copied so far are equal; verify again when the copy is complete"), command.MigrateNotReady)
	case v.Unsettled > 0:
		return command.WithCode(fmt.Errorf("changes of %s are still pending; verify again while a runner is running; a row that stays waits for another one, and cutover or rollback names it", term.Count(v.Unsettled, "row")), command.MigrateNotReady)
	}
	return nil
}

// shownDivergences is how many differences are shown.
const shownDivergences = 20

func printVerification(w io.Writer, v migrate.Verification) error {
	style := term.StyleFor(w)
	var b strings.Builder
	shown := v.Divergences[:min(len(v.Divergences), shownDivergences)]
	for _, d := range shown {
		fmt.Fprintf(&b, "%s %s\n", style.Red("differs"), d)
	}
	if v.Requeued > int64(len(shown)) && len(shown) == shownDivergences {
		fmt.Fprintf(&b, "… of %s that differ; --json lists the first %s\n", term.Count(v.Requeued, "row"), term.Number(int64(len(v.Divergences))))
	}
	fmt.Fprintf(&b, "%s compared in %s, %s one by one\n", term.Count(v.Rows, "row"), term.Count(v.Ranges, "range"), term.Number(v.Suspects))
	if v.Clean() {
		b.WriteString(style.Green("Every row is equal on its shard.") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
