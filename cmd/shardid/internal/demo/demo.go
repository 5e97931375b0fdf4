// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/migrate"
)

// Result is the result of Run. A row is a row of the table or of its child.
type Result struct {
	SourceRows   int64   `json:"source_rows"`   // rows in the source
	CopiedRows   int64   `json:"copied_rows"`   // rows of the source that are on shards
	InsertedGORM int64   `json:"inserted_gorm"` // new rows that stay
	InsertedSQLX int64   `json:"inserted_sqlx"`
	Lost         int64   `json:"lost"`
	Duplicates   int64   `json:"duplicates"`
	Misrouted    int64   `json:"misrouted"`
	Seconds      float64 `json:"seconds"`
	Shards       []Shard `json:"shards"`

	UpdatedRows    int64   `json:"updated_rows"`     // by all writers
	DeletedRows    int64   `json:"deleted_rows"`     // rows that the writers inserted and deleted again
	SwitchPauseMS  float64 `json:"switch_pause_ms"`  // how long the tables were closed
	LongestPauseMS float64 `json:"longest_pause_ms"` // longest wait of a writer during the whole migration

	Apps  map[string]Writes `json:"-"` // by the names of the applications
	Dir   string            `json:"-"` // the folder of everything that was written
	Files []File            `json:"-"`
}

// File is a database that the demo read or wrote.
type File struct{ Path, Holds string }

// Verdict returns the numbers of wrong rows on the shards.
func (r Result) Verdict() Verdict { return Verdict{r.Lost, r.Duplicates, r.Misrouted} }

// Run migrates a database to shards while applications go on writing to it.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.validate(); err != nil {
		return Result{}, err
	}
	if err := checkFolder(cfg.Dir, cfg.File); err != nil {
		return Result{}, err
	}
	r := &run{Config: cfg}
	start := time.Now()
	err := errors.Join(r.run(ctx), r.close())
	r.result.Seconds = math.Round(100*time.Since(start).Seconds()) / 100
	return r.result, err
}

// run is one run of the demo.
type run struct {
	Config

	made    bool // this run created the source
	folder  folder
	source  *source
	live    *sql.DB // the copy of the source that applications work with
	control *control
	shards  *shards
	job     *migrate.Job
	copied  atomic.Int64 // rows copied by the migration
	apps    map[string]app
	traffic *traffic
	result  Result
}

// run runs the phases, and stops after a phase that finds an error.
func (r *run) run(ctx context.Context) error {
	for _, phase := range []func(context.Context) error{
		r.makeSource, r.inspect, r.install, r.migrate, r.verify, r.readBack,
	} {
		if err := phase(ctx); err != nil || !r.result.Verdict().Clean() {
			return err
		}
	}
	return nil
}

func (r *run) close() error {
	var errs []error
	if r.traffic != nil {
		r.traffic.abort()
	}
	if r.control != nil {
		errs = append(errs, r.control.close())
	}
	if r.shards != nil {
		errs = append(errs, r.shards.close())
	}
	if r.live != nil {
		errs = append(errs, r.live.Close())
	}
	if r.source != nil {
		errs = append(errs, r.source.close())
	}
	return errors.Join(append(errs, r.folder.close())...)
}

// makeSource creates a database, unless the user has named one.
func (r *run) makeSource(ctx context.Context) (err error) {
	if r.File != "" {
		return nil
	}
	if r.folder, err = makeFolder(r.Dir); err != nil {
		return err
	}
	r.result.Dir = r.folder.path
	r.Progress.Begin("source", int64(r.Rows))
	db, err := r.folder.create(ctx, sourceFile)
	if err != nil {
		return err
	}
	if err := errors.Join(makeOrders(ctx, db, r.Rows, r.Progress.Add), db.Close()); err != nil {
		return err
	}
	r.made = true
	r.File, r.Table, r.Child = r.folder.file(sourceFile), ordersTable, itemsTable+"."+itemsParent
	r.Progress.End("made " + r.File)
	return nil
}

// inspect opens the source and reads the tables that are to be moved. It is the last phase
// that may find a mistake of the user.
func (r *run) inspect(ctx context.Context) (err error) {
	r.Progress.Begin("inspect", 0)
	childTable, childColumn := r.child()
	if r.source, err = openSource(ctx, r.File, r.Table, childTable, childColumn); err != nil {
		return err
	}
	if err := checkLayout(r.source.tables); err != nil {
		return err
	}
	var found, notes []string
	for _, t := range r.source.tables {
		r.result.SourceRows += t.rows
		found = append(found, fmt.Sprintf("%s %s, next %s %s", term.Number(t.rows), t.name, t.key, term.Number(t.next)))
		for _, about := range t.unique {
			notes = append(notes, fmt.Sprintf("%s: %s, and is not kept", t.name, about))
		}
	}
	r.result.Files = []File{{r.source.path, "the source, unchanged"}}
	r.Progress.End(strings.Join(append(found, notes...), "; "))
	return nil
}

// install creates the databases: the copy that is migrated, counters above the ids in use,
// and shards without tables.
func (r *run) install(ctx context.Context) (err error) {
	if r.folder.path == "" {
		if r.folder, err = makeFolder(r.Dir); err != nil {
			return err
		}
		r.result.Dir = r.folder.path
	}
	r.Progress.Begin("install", 0)
	if r.live, err = makeLive(ctx, r.folder, r.source, r.made); err != nil {
		return err
	}
	if r.control, err = install(ctx, r.folder, r.source.tables); err != nil {
		return err
	}
	if r.shards, err = makeShards(ctx, r.folder, r.source.tables); err != nil {
		return err
	}
	if r.apps, err = deploy(ctx, r.control, r.shards.and(r.live), r.source.tables); err != nil {
		return err
	}
	if r.traffic, err = newTraffic(ctx, r.source, r.Progress.Add); err != nil {
		return err
	}
	if r.job, err = r.newJob(); err != nil {
		return err
	}
	r.listFiles()
	var seeds []string
	for _, t := range r.source.tables {
		seeds = append(seeds, fmt.Sprintf("%s from %s", t.name, term.Number(t.next+seedMargin)))
	}
	r.Progress.End(fmt.Sprintf("a live copy; generated ids, %s above the next, for %s", term.Number(seedMargin), strings.Join(seeds, ", ")))
	return nil
}

func (r *run) listFiles() {
	r.result.Files = append(r.result.Files,
		File{r.folder.file(liveFile), "the copy that was migrated, with its retired tables"},
		File{r.folder.file(controlFile), "leaf_alloc and WORKER_NODE"})
	for _, name := range shardNames() {
		r.result.Files = append(r.result.Files, File{r.folder.file(name + ".db"), "a shard"})
	}
}

// readBack counts each row as lost that an application cannot find by its id.
func (r *run) readBack(ctx context.Context) error {
	r.Progress.Begin("read back", int64(len(r.apps))*(r.result.InsertedGORM+r.result.InsertedSQLX))
	wrong, err := r.traffic.readBack(ctx, r.apps)
	if err != nil {
		return err
	}
	r.result.Lost = wrong
	did := "every new row found by id, through GORM and through sqlx"
	if wrong > 0 {
		did = term.Count(wrong, "new row") + " missing or different"
	}
	r.Progress.End(did)
	return nil
}

// verify compares all shards with the source and with the writes that were acknowledged,
// for each table.
func (r *run) verify(ctx context.Context) error {
	if r.BeforeCheck != nil {
		if err := r.BeforeCheck(ctx, r.shards.router); err != nil {
			return err
		}
	}
	r.Progress.Begin("compare", r.result.SourceRows+r.result.InsertedGORM+r.result.InsertedSQLX)
	for i := range r.source.tables {
		v, err := verifyTable(ctx, r.source, r.shards, r.traffic.ledgers[i], r.Progress.Add)
		if err != nil {
			return err
		}
		r.result.add(v)
	}
	slices.SortStableFunc(r.result.Shards, func(a, b Shard) int { return cmp.Compare(a.DB, b.DB) })
	v := r.result.Verdict()
	r.Progress.End(fmt.Sprintf("row by row: %d lost, %d duplicates, %d misrouted", v.Lost, v.Duplicates, v.Misrouted))
	return nil
}

func (r *Result) add(v verified) {
	r.CopiedRows += v.copied
	r.Lost += v.verdict.Lost
	r.Duplicates += v.verdict.Duplicates
	r.Misrouted += v.verdict.Misrouted
	r.Shards = append(r.Shards, v.shards...)
}
