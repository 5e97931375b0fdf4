// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/migrate"
)

// Steps are what somebody does next. No step decides anything: a person has to decide whether to
// switch, and whether to end the possibility of a rollback.
type Steps struct {
	First string `json:"first,omitempty"` // what has to be done by hand before Next
	Next  string `json:"next"`            // the next command, "" for none
	Then  string `json:"then,omitempty"`  // what follows when Next has exited with 0
}

func (s Steps) text() string {
	switch {
	case s.First == "":
		return s.Next
	case s.Next == "":
		return s.First
	}
	return s.First + ", then " + s.Next
}

// nextSteps are the next steps of the job.
func nextSteps(ctx context.Context, o *Operation, s migrate.Status) (Steps, error) {
	switch s.Phase {
	case migrate.PhaseNone:
		return firstSteps(ctx, o)
	case migrate.PhaseAborted:
		return Steps{Next: o.command("abort")}, nil
	case migrate.PhaseFinalized:
		return Steps{}, nil
	}
	switch {
	case s.Changed != "":
		return Steps{}, nil
	case betweenRunners(s):
		return Steps{First: "wait for " + seconds(int64(takeOver.Seconds())), Next: o.command("status")}, nil
	case s.NeedsRunner():
		return Steps{Next: o.command("run")}, nil
	case s.Paused && s.Phase == migrate.PhaseCopying:
		return Steps{Next: o.command("resume")}, nil
	case s.Phase == migrate.PhaseFollowing:
		return Steps{Next: o.command("verify"), Then: "preview --check, and cutover when both have exited with 0"}, nil
	case s.Phase == migrate.PhaseReturning:
		return Steps{Next: o.command("rollback")}, nil
	case s.Phase == migrate.PhaseSwitched:
		return Steps{Next: o.command("verify"), Then: "finalize, which ends the possibility of a rollback, when you are certain"}, nil
	}
	return Steps{}, nil
}

// firstSteps are the next steps of a job that has not begun, by what install and seed have left on
// the source. Inspect and plan leave nothing there.
func firstSteps(ctx context.Context, o *Operation) (Steps, error) {
	for _, table := range []string{"leaf_alloc", "shardid_preview"} {
		if there, err := exists(ctx, o.cfg.Source, table); err != nil || !there {
			return Steps{Next: o.command("inspect"), Then: "plan and install, when no finding blocks the job (runbook, steps 1 and 2)"}, err
		}
	}
	for _, t := range o.cfg.Tables {
		if needs, err := needsSeed(ctx, o.cfg.Source, t.Name); err != nil || needs {
			return Steps{
				First: "choose MARGIN, three times as many ids as the tables get until the cutover (runbook, step 3)",
				Next:  o.command("seed") + " --margin MARGIN",
			}, err
		}
	}
	return Steps{First: "deploy the application with the router (runbook, step 4)", Next: o.command("run")}, nil
}

// needsSeed reports whether the source numbers the rows of the table, and nobody has made generated
// ids begin above them.
func needsSeed(ctx context.Context, source *sql.DB, table string) (bool, error) {
	if _, seeded, err := beginOf(ctx, source, table); err != nil || seeded {
		return false, err
	}
	server, err := dialect.Detect(ctx, source)
	if err != nil {
		return false, err
	}
	own, err := dialect.OwnValues(ctx, source, server, table)
	if err != nil {
		return false, fmt.Errorf("read which columns of %s the source numbers: %w", table, err)
	}
	for _, column := range own {
		if column.Numbered {
			return true, nil
		}
	}
	return false, nil
}

// exists reports whether a database has a table that the user may read.
func exists(ctx context.Context, db *sql.DB, table string) (bool, error) {
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return false, err
	}
	var one int
	err = db.QueryRowContext(ctx, "SELECT 1 FROM "+server.Quote(table)+" WHERE 1 = 0").Scan(&one)
	switch {
	case err == nil || errors.Is(err, sql.ErrNoRows):
		return true, nil
	case dialect.FaultOf(err) == dialect.NoTable, dialect.FaultOf(err) == dialect.NoRight: // status is also for users with few rights
		return false, nil
	}
	return false, fmt.Errorf("look for table %s: %w", table, err)
}

// lines are the lines of status about the next steps.
func (s Steps) lines(bold func(string) string) string {
	var b strings.Builder
	if text := s.text(); text != "" {
		fmt.Fprintf(&b, "next: %s\n", bold(text))
	}
	if s.Then != "" {
		fmt.Fprintf(&b, "then: %s\n", s.Then)
	}
	return b.String()
}
