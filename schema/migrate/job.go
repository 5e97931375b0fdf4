package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/idmap"
	"github.com/shardid/shardid/schema/internal/proto"
	"github.com/shardid/shardid/sharding"
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
	*Job

	source *backend.Database
	sides  []*backend.Database // of the shards, in the order of the targets
	tables []*table
	room   *room  // for rows on their way
	mark   string // by which shards know the job from one of this name on another source; a leader's
}

func newOpenJob(j *Job) *openJob { return &openJob{Job: j, room: newRoom()} }

// table is one table of the job.
type table struct {
	backend.Table

	ord     int // its place in the job, and its number in logs
	conf    Table
	targets []*target
	index   map[sharding.Target]int

	up, down   []relation // foreign keys of the table, and to it
	references []reference
	ids        *idmap.Renumbering   // of the primary key; nil: it is kept
	rewrites   []*idmap.Renumbering // of the columns, in their order; nil: all are kept
	route      route

	weights weights // of its rows
}

// target is one physical table of a table's shards.
type target struct {
	side   *backend.Database
	name   string
	sealed bool // bears the name that a rollback gave it
}

// open describes the tables where they are now: under their own names or, after
// the switch, under those of retired ones.
func (j *Job) open(ctx context.Context) (*openJob, error) {
	w := newOpenJob(j)
	var err error
	if w.source, err = backend.Open(ctx, "source", backend.FenceTable, j.cfg.Source); err != nil {
		return nil, err
	}
	byName := map[string]*backend.Database{}
	for ord, conf := range j.cfg.Tables {
		t := &table{ord: ord, conf: conf, index: map[sharding.Target]int{}}
		for i, at := range conf.Map.Targets() {
			if byName[at.DB] == nil {
				if byName[at.DB], err = backend.Open(ctx, at.DB, backend.ShardFenceTable, j.cfg.Shards[at.DB]); err != nil {
					return nil, err
				}
				w.sides = append(w.sides, byName[at.DB])
			}
			t.targets = append(t.targets, &target{side: byName[at.DB], name: at.Table})
			t.index[at] = i
		}
		w.tables = append(w.tables, t)
	}
	if err := w.look(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// look finds out what is where.
func (w *openJob) look(ctx context.Context) error {
	if err := w.source.Do(ctx, func(s *backend.Session) error { return w.describe(ctx, s) }); err != nil {
		return err
	}
	if err := w.separate(ctx); err != nil {
		return err
	}
	return w.eachTarget(ctx, func(s *backend.Session, t *table, i int) (err error) {
		t.targets[i].sealed, err = s.Database.Exists(ctx, s, backend.Sealed(t.targets[i].name))
		return err
	})
}

// separate refuses shards where the source is: in a file with one writer at a time,
// nothing could be written to them while the source is locked. In a database of a server
// they need names of their own.
func (w *openJob) separate(ctx context.Context) error {
	var home string
	err := w.source.Do(ctx, func(s *backend.Session) (err error) {
		home, err = s.Place(ctx)
		return err
	})
	if err != nil || home == "" {
		return err
	}
	for _, side := range w.sides {
		err := side.Do(ctx, func(s *backend.Session) error {
			is, err := s.Place(ctx)
			if err != nil || is != home {
				return err
			}
			return w.beside(side)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// beside says why shards of a side cannot be where the source is.
func (w *openJob) beside(of *backend.Database) error {
	if of.Name() == "sqlite" {
		return fmt.Errorf("%w: database %s is the same file as the source; shards need files of their own", ErrUnsupported, of.Label)
	}
	for _, to := range w.targetsOn(of) {
		if w.cfg.names(to.name) {
			return fmt.Errorf("%w: shard %s on %s is the table of the source itself; shards in its database need names of their own", ErrConfig, to.name, of.Label)
		}
	}
	return nil
}

// names reports whether a table of the job is called so.
func (c Config) names(table string) bool {
	return slices.ContainsFunc(c.Tables, func(t Table) bool { return strings.EqualFold(t.Name, table) })
}

func (w *openJob) close() {
	w.source.Close()
	for _, s := range w.sides {
		s.Close()
	}
}

func (w *openJob) describe(ctx context.Context, s *backend.Session) error {
	for _, t := range w.tables {
		name, err := w.presentName(ctx, s, t)
		if err != nil {
			return err
		}
		if t.Table, err = s.Database.Describe(ctx, s, name); err != nil {
			return renamedMeanwhile(err)
		}
		if err := w.checkTriggers(t); err != nil {
			return err
		}
	}
	return w.resolve()
}

// isRetired: the table has the name of after the switch. The database may spell it
// in another case than the configuration.
func (t *table) isRetired() bool { return strings.EqualFold(t.Name, backend.Retired(t.conf.Name)) }

// renamedMeanwhile: a switch of a runner that was cut off may go on in its server,
// between the reading of a name and that of its table.
func renamedMeanwhile(err error) error {
	if errors.Is(err, backend.ErrNoTable) {
		return fmt.Errorf("%w: %w", backend.ErrAgain, err)
	}
	return err
}

// presentName is the table's name on the source. Of two names, the first is asked
// for again at the end: a rename may have come between.
func (w *openJob) presentName(ctx context.Context, s *backend.Session, t *table) (string, error) {
	for _, name := range []string{t.conf.Name, backend.Retired(t.conf.Name), t.conf.Name} {
		if there, err := s.Database.Exists(ctx, s, name); err != nil || there {
			return name, err
		}
	}
	return "", fmt.Errorf("%w: the source has no table %s; check the spelling, and which database the source is", ErrConfig, t.conf.Name)
}

// checkTriggers: what the user's triggers do on the source, nobody would do on
// the shards.
func (w *openJob) checkTriggers(t *table) error {
	for _, name := range t.Triggers {
		if !strings.HasPrefix(name, "shardid_") {
			return fmt.Errorf("%w: table %s has the trigger %s, which the shards would not have; move what it does into the application", ErrUnsupported, t.Name, name)
		}
	}
	return nil
}

// diagnose says whether a switch was begun and not finished.
func (w *openJob) diagnose(ctx context.Context, s *backend.Session) (proto.Repair, error) {
	current, renamed := make([]bool, len(w.tables)), make([]bool, len(w.tables))
	for i, t := range w.tables {
		var err error
		if current[i], err = s.Database.Exists(ctx, s, t.conf.Name); err != nil {
			return proto.Unclear, err
		}
		if renamed[i], err = s.Database.Exists(ctx, s, backend.Retired(t.conf.Name)); err != nil {
			return proto.Unclear, err
		}
	}
	return proto.Diagnose(current, renamed), nil
}

// present is the physical name of a shard at present.
func (t *target) present() string {
	if t.sealed {
		return backend.Sealed(t.name)
	}
	return t.name
}

// place returns the target of a sharding key's value.
func (t *table) place(key any) (int, error) {
	at, err := t.conf.Target(key)
	return t.index[at], err
}

func (w *openJob) observe(name string, t *table, rows int64) {
	step := Step{Name: name, Rows: rows}
	if t != nil {
		step.Table = t.conf.Name
	}
	w.cfg.Observe(step)
}
