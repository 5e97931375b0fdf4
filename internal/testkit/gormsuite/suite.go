// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

// Database is a database to run the tests on.
type Database struct {
	// Open returns a pool of the same database each time. It closes the pool when the test ends.
	Open func(t testing.TB) *sql.DB
	// Dialector returns gorm's dialector for the pool.
	Dialector func(*sql.DB) gorm.Dialector
	// Finds says whether the key of the row that conflicts with a DO NOTHING is found: by RETURNING
	// on MariaDB, and for a single row by LAST_INSERT_ID.
	Finds Finds
	// Family is the kind of the database.
	Family string // "sqlite", "mysql" or "postgres"
}

// Finds says for which creates the key of an existing row is found.
type Finds int

// None, that of a single row, or all.
const (
	None Finds = iota
	Single
	All
)

// Run runs all tests on the database, with gorm's default settings and with prepared statements.
func Run(t *testing.T, d Database) {
	migrate(t, d)
	for _, mode := range []struct {
		name   string
		config gorm.Config
	}{{"usual", gorm.Config{}}, {"prepared", gorm.Config{PrepareStmt: true}}} {
		t.Run(mode.name, func(t *testing.T) {
			for _, test := range tests() {
				t.Run(test.name, func(t *testing.T) { test.run(t, open(t, d, &mode.config)) })
			}
		})
	}
}

type test struct {
	name string
	run  func(*testing.T, *env)
}

func tests() []test {
	return slices.Concat(formTests, associationTests, conflictTests, statementTests, failureTests, kindTests, waitTests, equivalenceTests)
}

// env is the environment of one test.
type env struct {
	*gorm.DB

	Database

	gen  *source
	log  *record
	pool *sql.DB
}

// first and step define the ids of a test's source.
const (
	first = 1_000_000
	step  = 10
)

// id returns the n-th id of the source, counted from 0.
func id(n int64) int64 { return first + n*step }

func open(t *testing.T, d Database, config *gorm.Config) *env {
	t.Helper()
	e := &env{Database: d, pool: d.Open(t), gen: &source{Generator: keygen.Counting(first, step)}, log: &record{}}
	e.DB = e.open(t, e.pool, *config, gormplugin.Config{})
	empty(t, e.DB)
	e.log.take()
	return e
}

// open returns a *gorm.DB for the pool with its own plugin. Missing parts of the plugin's
// configuration default to those of the test.
func (e *env) open(t *testing.T, pool *sql.DB, config gorm.Config, c gormplugin.Config) *gorm.DB {
	t.Helper()
	config.Logger, config.DisableForeignKeyConstraintWhenMigrating = e.log, true
	db, err := gorm.Open(e.Dialector(pool), &config)
	must(t, err)
	if c.Generators.Default == nil {
		c.Generators = e.set()
	}
	must(t, db.SetupJoinTable(&Customer{}, "Badges", &Holding{}))
	must(t, db.Use(gormplugin.New(c)))
	return db
}

func (e *env) set() keygen.Set {
	return keygen.Set{
		Default: e.gen,
		Named:   map[string]keygen.Generator[int64]{"pet": keygen.Counting(500, 1), "wide": keygen.Counting(1<<40, 1)},
		Text:    map[string]keygen.Generator[string]{"word": &words{}},
		Binary:  map[string]keygen.Generator[[16]byte]{"uuid": &binaries{}},
	}
}

// bare returns a *gorm.DB without the plugin, to read the tables.
func (e *env) bare(t *testing.T) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(e.Dialector(e.pool), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	return db
}

// source is a sequence that records its reservations, and fails on request.
type source struct {
	keygen.Generator[int64]

	mu    sync.Mutex
	fills []int
	drawn int64
	err   error
}

func (s *source) Fill(ctx context.Context, dst []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fills = append(s.fills, len(dst))
	if s.err != nil {
		return s.err
	}
	s.drawn += int64(len(dst))
	return keygen.Fill(ctx, s.Generator, dst)
}

// take returns the sizes of the reservations since the last take.
func (s *source) take() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	fills := s.fills
	s.fills = nil
	return fills
}

// isDatabases reports whether the id did not come from the source.
func (s *source) isDatabases(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := id >= first && (id-first)%step == 0 && (id-first)/step < s.drawn
	return id != 0 && !given
}

// record is a logger that stores the statements.
type record struct {
	mu  sync.Mutex
	sql []string
}

var _ logger.Interface = (*record)(nil)

// LogMode returns the same logger, because it always stores everything.
func (r *record) LogMode(logger.LogLevel) logger.Interface { return r }

// Info stores nothing.
func (*record) Info(context.Context, string, ...any) {}

// Warn stores nothing.
func (*record) Warn(context.Context, string, ...any) {}

// Error stores nothing.
func (*record) Error(context.Context, string, ...any) {}

// Trace stores the statement.
func (r *record) Trace(_ context.Context, _ time.Time, statement func() (string, int64), _ error) {
	sql, _ := statement()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sql = append(r.sql, sql)
}

func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	sql := r.sql
	r.sql = nil
	return sql
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same compares a value with the expected one.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sameList compares lists.
func sameList[T comparable](t *testing.T, what string, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// sameJSON compares values that contain pointers.
func sameJSON(t *testing.T, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	must(t, err)
	w, err := json.Marshal(want)
	must(t, err)
	same(t, "stored", string(g), string(w))
}
