// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Cell is the state of a version in a database.
type Cell struct {
	State State `json:"state"`
	Done  int   `json:"done"` // how many of Steps are done
	Steps int   `json:"steps"`
}

// Line is a version with its state in each database.
type Line struct {
	Version int64  `json:"version"`
	File    string `json:"file"` // "" for a version that databases have and no file has

	Cells map[string]Cell `json:"cells"` // by database; those that cannot be reached have none
}

// Matrix is what Status returns: all versions by all databases.
type Matrix struct {
	Databases   []string          `json:"databases"`
	Unreachable map[string]string `json:"unreachable,omitempty"` // by database: why
	Lines       []Line            `json:"versions"`
}

// Complete reports whether every version of the files is applied in every database, and no
// database has a version that no file has: Up refuses those.
func (m *Matrix) Complete() bool {
	for _, line := range m.Lines {
		if line.File == "" {
			return false
		}
		for _, cell := range line.Cells {
			if cell.State != Applied {
				return false
			}
		}
	}
	return len(m.Unreachable) == 0
}

// Status returns the state of each version in each database. It writes nothing. An
// unreachable database is not an error.
func (r *Runner) Status(ctx context.Context) (m Matrix, err error) {
	v, err := r.visit(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	m = Matrix{Databases: slices.Sorted(slices.Values(r.config.Router.Databases())), Unreachable: unreached(v.missing)}
	for _, file := range r.versions {
		line := Line{Version: file.number, File: file.name, Cells: map[string]Cell{}}
		for _, s := range v.shards {
			steps, err := v.steps(s, file, up)
			if err != nil {
				return m, err
			}
			state, finished := s.notes.state(file.number, steps)
			line.Cells[s.name] = Cell{state, finished, len(steps)}
		}
		m.Lines = append(m.Lines, line)
	}
	for _, s := range v.shards {
		for _, number := range s.notes.versions() {
			if r.file(number) == nil {
				state, _ := s.notes.state(number, nil)
				m.unknown(number, s.name, state)
			}
		}
	}
	slices.SortStableFunc(m.Lines, func(a, b Line) int { return int(a.Version - b.Version) })
	return m, nil
}

// unknown adds a version that no file has. How many statements it had is not known either.
func (m *Matrix) unknown(number int64, db string, state State) {
	i := slices.IndexFunc(m.Lines, func(l Line) bool { return l.Version == number })
	if i < 0 {
		i, m.Lines = len(m.Lines), append(m.Lines, Line{Version: number, Cells: map[string]Cell{}})
	}
	m.Lines[i].Cells[db] = Cell{State: state}
}

// unreached returns the databases of joined *UnreachableError errors.
func unreached(err error) map[string]string {
	found := map[string]string{}
	var walk func(error)
	walk = func(err error) {
		var one *UnreachableError
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				walk(e)
			}
		} else if errors.As(err, &one) {
			found[one.Database] = one.Err.Error()
		}
	}
	if err != nil {
		walk(err)
	}
	return found
}

// Plan returns the statements that Up would send up to a version, 0 for all, by version and
// then by database. It writes nothing. For unreachable databases it returns an error beside
// the statements of the others.
func (r *Runner) Plan(ctx context.Context, to int64) (all []Step, err error) {
	v, err := r.visit(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.close()) }()
	if err := v.inOrder(); err != nil {
		return nil, err
	}
	for _, file := range r.versions {
		if to != 0 && file.number > to {
			break
		}
		for _, s := range v.shards {
			steps, err := v.steps(s, file, up)
			if err != nil {
				return nil, err
			}
			if err := s.notes.check(file, steps, up); err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			for i := range steps {
				if kept := s.notes[steps[i].key(up)]; kept == nil || kept.state == began {
					all = append(all, steps[i])
				}
			}
		}
	}
	return all, v.missing
}
