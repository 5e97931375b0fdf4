// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// Config says which versions are run, and where.
type Config struct {
	// Router knows the tables and their databases.
	Router *sharding.Router

	// Files has the versions at its root, named NNNNN_name.sql as in goose.
	Files fs.FS

	// Concurrency is how many databases are processed at once; the physical tables of one
	// database are processed in turn. Defaults to 4.
	Concurrency int

	// Observe is called after each executed statement, one at a time. Defaults to no call.
	Observe func(Step)
}

// Runner runs versions. It is safe for concurrent use, also by several processes: they wait
// for each other, and give up with ErrLocked.
type Runner struct {
	config   Config
	versions []*version
	telling  sync.Mutex
}

// New reads the files. Statements are parsed when the first database is opened, because
// their syntax depends on its dialect.
func New(ctx context.Context, c Config) (*Runner, error) {
	if c.Router == nil || c.Files == nil {
		return nil, errors.New("versions: give a Router and Files")
	}
	if c.Concurrency == 0 {
		c.Concurrency = 4
	}
	if c.Concurrency < 0 {
		return nil, fmt.Errorf("versions: Concurrency is %d; give a number above 0", c.Concurrency)
	}
	all, err := readVersions(ctx, c.Files)
	if err != nil {
		return nil, err
	}
	return &Runner{config: c, versions: all}, nil
}

// Newest returns the highest version of the files.
func (r *Runner) Newest() int64 { return r.versions[len(r.versions)-1].number }

// shard is a database that answers: its session, the statements in its dialect, and its
// notes.
type shard struct {
	*session

	statements versionStatements
	notes      notes
}

// visit is one pass over all databases.
type visit struct {
	*Runner

	router  *sharding.Snapshot
	shards  []*shard // by name
	missing error    // *UnreachableError, joined
}

// visit opens every database, and parses the statements in the dialect of each. The caller
// closes it.
func (r *Runner) visit(ctx context.Context) (*visit, error) {
	v := &visit{Runner: r, router: r.config.Router.Snapshot()}
	type reading struct {
		dialect string
		flavor  sqltext.Flavor
	}
	statements := map[reading]versionStatements{}
	for _, name := range slices.Sorted(slices.Values(r.config.Router.Databases())) {
		s, err := open(ctx, r.config.Router, name)
		if err != nil {
			v.missing = errors.Join(v.missing, err)
			continue
		}
		sh := &shard{session: s, notes: notes{}}
		v.shards = append(v.shards, sh)
		key := reading{s.Name(), s.flavor}
		if statements[key] == nil {
			if statements[key], err = readStatements(r.versions, s.Name(), s.flavor); err != nil {
				return nil, errors.Join(err, v.close())
			}
		}
		sh.statements = statements[key]
	}
	if err := errors.Join(v.look(ctx), v.checkSteps()); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

func (v *visit) close() error {
	var errs []error
	for _, s := range v.shards {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// look reads the notes of all databases.
func (v *visit) look(ctx context.Context) error {
	for _, s := range v.shards {
		there, err := s.hasLog(ctx)
		if err == nil && there {
			s.notes, err = s.session.notes(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("versions: %s: %w", s.name, err)
		}
	}
	return nil
}

// checkSteps finds statements that cannot be placed on the shards, before any is sent.
func (v *visit) checkSteps() error {
	for _, s := range v.shards {
		for _, file := range v.versions {
			for _, d := range []direction{up, down} {
				if _, err := v.steps(s, file, d); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (v *visit) steps(s *shard, file *version, d direction) ([]Step, error) {
	return s.statements.steps(v.router, file, d, s.name, s)
}

// tell calls Observe.
func (r *Runner) tell(step Step) {
	if r.config.Observe != nil {
		r.telling.Lock()
		defer r.telling.Unlock()
		r.config.Observe(step)
	}
}

// each runs f for the shards, Concurrency at once, and joins the errors.
func (v *visit) each(shards []*shard, f func(*shard) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(shards))
	room := make(chan struct{}, v.config.Concurrency)
	for i, s := range shards {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			errs[i] = f(s)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
