// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/transfer"
)

// Job is one migration. It is safe for concurrent use, and holds no connection
// between calls.
type Job struct {
	cfg Config
}

// New returns the job that cfg describes, without touching a database. Its
// errors wrap ErrConfig and name the fields.
func New(cfg Config) (*Job, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Job{cfg}, nil
}

// openJob is a job with its databases opened and its tables described.
type openJob struct {
	*lead.State

	cfg    Config
	budget *transfer.Budget // memory for the rows of the copiers and of the follower
}

func (j *Job) open(ctx context.Context) (*openJob, error) {
	w, err := openjob.Open(ctx, j.cfg.known())
	if err != nil {
		return nil, err
	}
	return newOpenJob(w, j.cfg), nil
}

func newOpenJob(w *openjob.Job, cfg Config) *openJob {
	return &openJob{State: &lead.State{Job: w}, cfg: cfg, budget: transfer.NewBudget(cfg.Copiers + 1)}
}

// names reports whether a table of the job has this name.
func (c Config) names(table string) bool {
	return slices.ContainsFunc(c.Tables, func(t Table) bool { return strings.EqualFold(t.Name, table) })
}
