package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/term"
)

// Result is what Run did. A row is a row of the table or of its child.
type Result struct {
	SourceRows   int64   `json:"source_rows"`   // rows in the source
	CopiedRows   int64   `json:"copied_rows"`   // rows that were copied to shards
	InsertedGORM int64   `json:"inserted_gorm"` // new rows with generated ids
	InsertedSQLX int64   `json:"inserted_sqlx"`
	Lost         int64   `json:"lost"`
	Duplicates   int64   `json:"duplicates"`
	Misrouted    int64   `json:"misrouted"`
	Seconds      float64 `json:"seconds"`
	Shards       []Shard `json:"shards"`

	Dir     string   `json:"-"` // the folder of everything that was written
	Source  string   `json:"-"` // files, by what they hold
	Control string   `json:"-"`
	DBs     []string `json:"-"`
}

// Verdict returns what is wrong with the shards.
func (r Result) Verdict() Verdict { return Verdict{r.Lost, r.Duplicates, r.Misrouted} }

// Run migrates a database to shards and inserts new rows there.
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

	folder  folder
	source  *source
	control *control
	shards  *shards
	apps    map[string]app
	traffic *traffic
	result  Result
}

// run does the phases, and stops behind the one that finds something wrong.
func (r *run) run(ctx context.Context) error {
	for _, phase := range []func(context.Context) error{
		r.makeSource, r.inspect, r.install, r.copy, r.verifyCopy, r.insert, r.readBack, r.verifyAll,
	} {
		if err := phase(ctx); err != nil || !r.result.Verdict().Clean() {
			return err
		}
	}
	return nil
}

func (r *run) close() error {
	var errs []error
	if r.control != nil {
		errs = append(errs, r.control.close())
	}
	if r.shards != nil {
		errs = append(errs, r.shards.close())
	}
	if r.source != nil {
		errs = append(errs, r.source.close())
	}
	return errors.Join(append(errs, r.folder.close())...)
}

// makeSource makes a database, unless the user has one.
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
	r.File, r.Table, r.Child = r.folder.file(sourceFile), ordersTable, itemsTable+"."+itemsParent
	r.Progress.End("made " + r.File)
	return nil
}

// inspect opens the source and finds out what is to be moved. It is the last
// phase that may find a mistake of the user's.
func (r *run) inspect(ctx context.Context) (err error) {
	r.Progress.Begin("inspect", 0)
	childTable, childColumn := r.child()
	if r.source, err = openSource(ctx, r.File, r.Table, childTable, childColumn); err != nil {
		return err
	}
	if err := checkRouter(r.source.tables); err != nil {
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
	r.result.Source = r.source.path
	r.Progress.End(strings.Join(append(found, notes...), "; "))
	return nil
}

// install makes the databases: counters above the ids in use, and empty shards.
func (r *run) install(ctx context.Context) (err error) {
	if r.folder.path == "" {
		if r.folder, err = makeFolder(r.Dir); err != nil {
			return err
		}
		r.result.Dir = r.folder.path
	}
	r.Progress.Begin("install", 0)
	if r.control, err = install(ctx, r.folder, r.source.tables); err != nil {
		return err
	}
	if r.shards, err = makeShards(ctx, r.folder, r.source.tables); err != nil {
		return err
	}
	var seeds []string
	for _, t := range r.source.tables {
		seeds = append(seeds, fmt.Sprintf("%s from %s", t.name, term.Number(t.next+seedMargin)))
	}
	r.result.Control = r.folder.file(controlFile)
	for _, name := range shardNames() {
		r.result.DBs = append(r.result.DBs, r.folder.file(name+".db"))
	}
	r.Progress.End("new ids for " + strings.Join(seeds, ", "))
	return nil
}

func (r *run) copy(ctx context.Context) error {
	r.Progress.Begin("copy", r.result.SourceRows)
	for _, t := range r.source.tables {
		n, err := copyTable(ctx, r.source, r.shards, t, r.Progress.Add)
		r.result.CopiedRows += n
		if err == nil {
			err = indexChildren(ctx, r.shards, t)
		}
		if err != nil {
			return err
		}
	}
	parent := r.source.tables[0]
	r.Progress.End(fmt.Sprintf("%s rows into %d databases × %d tables by %s.%s", term.Number(r.result.CopiedRows), databases, tables/databases, parent.name, parent.key))
	if r.AfterCopy != nil {
		return r.AfterCopy(ctx, r.shards.router)
	}
	return nil
}

func (r *run) verifyCopy(ctx context.Context) error {
	return r.verify(ctx, make([][][]any, len(r.source.tables)))
}

// insert puts new rows on the shards through GORM and sqlx at the same time.
func (r *run) insert(ctx context.Context) error {
	var err error
	if r.traffic, err = newTraffic(ctx, r.source, r.Progress.Add); err != nil {
		return err
	}
	if r.apps, err = newApps(r.control, r.shards.router, r.traffic.models); err != nil {
		return err
	}
	parents := len(r.apps) * r.traffic.parentsPerApp()
	r.Progress.Begin("insert", int64(parents*(1+r.traffic.perParent)))
	if err := r.traffic.insert(ctx, r.apps); err != nil {
		return err
	}
	byApp := r.traffic.countByApp()
	r.result.InsertedGORM, r.result.InsertedSQLX = byApp[viaGORM], byApp[viaSQLX]
	r.Progress.End(fmt.Sprintf("%s rows through GORM, %s rows through sqlx, ids generated", term.Number(r.result.InsertedGORM), term.Number(r.result.InsertedSQLX)))
	return nil
}

// readBack counts a row that an application cannot find by its id as lost.
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

func (r *run) verifyAll(ctx context.Context) error {
	return r.verify(ctx, r.traffic.stored())
}

// verify compares all shards with the source and the rows added since, for each
// table.
func (r *run) verify(ctx context.Context, added [][][]any) error {
	r.Progress.Begin("verify", r.result.CopiedRows+r.result.InsertedGORM+r.result.InsertedSQLX)
	r.result.Shards = nil
	for i, t := range r.source.tables {
		v, counted, err := verifyTable(ctx, r.source, r.shards, t, added[i], r.Progress.Add)
		if err != nil {
			return err
		}
		r.result.add(v)
		r.result.Shards = append(r.result.Shards, counted...)
	}
	slices.SortStableFunc(r.result.Shards, func(a, b Shard) int { return cmp.Compare(a.DB, b.DB) })
	v := r.result.Verdict()
	r.Progress.End(fmt.Sprintf("row by row: %d lost, %d duplicates, %d misrouted", v.Lost, v.Duplicates, v.Misrouted))
	return nil
}

func (r *Result) add(v Verdict) {
	r.Lost += v.Lost
	r.Duplicates += v.Duplicates
	r.Misrouted += v.Misrouted
}
