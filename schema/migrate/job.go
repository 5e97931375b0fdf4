package migrate

import (
	"context"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/lead"
	"github.com/shardid/shardid/schema/internal/openjob"
	"github.com/shardid/shardid/schema/internal/proto"
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

	cfg  Config
	room *transfer.Room // for rows on their way: those of the copiers, and of the one who follows
}

func (j *Job) open(ctx context.Context) (*openJob, error) {
	w, err := openjob.Open(ctx, j.cfg.known())
	if err != nil {
		return nil, err
	}
	return newOpenJob(w, j.cfg), nil
}

func newOpenJob(w *openjob.Job, cfg Config) *openJob {
	return &openJob{State: &lead.State{Job: w}, cfg: cfg, room: transfer.NewRoom(cfg.Copiers + 1)}
}

// names reports whether a table of the job is called so.
func (c Config) names(table string) bool {
	return slices.ContainsFunc(c.Tables, func(t Table) bool { return strings.EqualFold(t.Name, table) })
}

// diagnose says whether a switch was begun and not finished.
func (w *openJob) diagnose(ctx context.Context, s *backend.Session) (proto.Repair, error) {
	current, renamed := make([]bool, len(w.Tables)), make([]bool, len(w.Tables))
	for i, t := range w.Tables {
		var err error
		if current[i], err = s.Database.Exists(ctx, s, t.Conf.Name); err != nil {
			return proto.Unclear, err
		}
		if renamed[i], err = s.Database.Exists(ctx, s, backend.Retired(t.Conf.Name)); err != nil {
			return proto.Unclear, err
		}
	}
	return proto.Diagnose(current, renamed), nil
}
