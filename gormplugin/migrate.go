// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/migrator"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/lookups"
)

// Migrate runs gorm's AutoMigrate for each model in every database that has the model's table: for
// a sharded table on every target, for a broadcast table in every database of the router and in the
// home database, which db was opened with, and for any other table in the home database. It
// migrates all databases at once, and the tables of one database one after another. It may be
// called again after an error and then continues. It returns all errors joined. A model without the
// column of its table's sharding key is an error. As in gorm, db.Table("orders") names the table of
// the models, and db.Set("gorm:table_options", "…") ends the text of CREATE TABLE. schema.Doctor finds differences among the targets of a table.
//
// gorm's own Migrator queries the home database only: its HasTable, HasColumn and HasIndex do not
// see the tables of shards. Its AutoMigrate and CreateTable of a sharded table are refused.
//
// Tables of shards get no AUTO_INCREMENT, because two shards would assign the same numbers, and no
// foreign keys, because the rows that they refer to may be on other shards. In databases in which
// the names of indexes must differ, Migrate appends the table's name to the index names that the
// model gives, and on MySQL and MariaDB to those of checks. On MySQL and MariaDB it creates a text column that is a sharding key with the
// collation utf8mb4_bin if the rule compares bytes and the model's type says no more than the
// length. The join table of a many-to-many relation of a sharded or broadcast model must be in the
// router; Migrate creates it, too. It creates the lookup tables of a table after it, with the types that the columns
// have on the shards. [Check] finds columns whose collation treats texts of different shards as
// equal.
func Migrate(ctx context.Context, db *gorm.DB, models ...any) (err error) {
	p, ok := db.Config.Plugins[pluginName].(*Plugin)
	if !ok {
		return ErrNotLoaded
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("gormplugin: migrate: %w", err)
		}
	}()
	if p.config.Router == nil {
		return db.WithContext(ctx).AutoMigrate(models...)
	}
	m := newMigration(db)
	for _, plan := range []func(any) error{m.plan, m.planJoins} {
		for _, model := range models {
			if err := plan(model); err != nil {
				return err
			}
		}
	}
	err = errors.Join(m.run(ctx), m.lookups(ctx))
	for _, model := range m.unplaced { // last, because they may refer to broadcast tables
		err = errors.Join(err, m.unrouted(ctx, model))
	}
	return err
}

// migration is one call of Migrate.
type migration struct {
	*routing

	db     *gorm.DB
	shards map[string]*gorm.DB       // the router's databases and the home database, by name
	jobs   map[string][]migrationJob // by database

	unplaced []any    // models whose tables are only in the home database
	planned  []string // all tables, in lower case
}

type migrationJob struct {
	model  any
	table  *sharding.Table // zero for a broadcast table
	target sharding.Target
}

func newMigration(db *gorm.DB) *migration {
	r, _ := db.Config.Plugins[routingName].(*routing)
	m := &migration{routing: r, db: db, shards: map[string]*gorm.DB{}, jobs: map[string][]migrationJob{}}
	isShard := false
	for _, name := range r.router.Databases() {
		m.shards[name] = openShard(db, r.router.DB(name))
		isShard = isShard || r.router.DB(name) == r.home
	}
	if !isShard {
		name := "home"
		if m.shards[name] != nil {
			name = "the home database" // because the router has another database of that name
		}
		m.shards[name] = openShard(db, r.home)
	}
	return m
}

// plan records the targets of the model's table.
func (m *migration) plan(model any) error {
	s, err := parseNamed(m.db, model)
	if err != nil {
		return err
	}
	m.planned = append(m.planned, strings.ToLower(s.Table))
	t, ok := m.router.Table(s.Table)
	if ok {
		if t.Origin() != nil || len(m.router.Targets(s.Table)) == 0 {
			return fmt.Errorf("%s: %w", s.Table, ErrMigrating)
		}
		if err := checkKey(s, &t); err != nil {
			return err
		}
	}
	targets := m.targets(s.Table)
	if len(targets) == 0 {
		m.unplaced = append(m.unplaced, model)
		return nil
	}
	for _, target := range targets {
		m.jobs[target.DB] = append(m.jobs[target.DB], migrationJob{model, &t, target})
	}
	return nil
}

// planJoins plans the join tables of a routed model for which no model is given, as gorm's AutoMigrate creates them.
func (m *migration) planJoins(model any) error {
	s, err := parseNamed(m.db, model)
	if err != nil || m.targets(s.Table) == nil || m.db.Statement.Table != "" {
		return err
	}
	for _, rel := range s.Relationships.Many2Many {
		join := rel.JoinTable.Table
		if rel.Field.IgnoreMigration || slices.Contains(m.planned, strings.ToLower(join)) {
			continue
		}
		if m.targets(join) == nil {
			return &sharding.RouteError{
				Op: "relation " + s.Name + "." + rel.Name + " to", Table: join, Err: sharding.ErrUnknownTable,
				Hint: joinHint(m.db, m.router, s, rel) + `, or tag the relation gorm:"-:migration" if you create it yourself`,
			}
		}
		if t, ok := m.router.Table(join); ok && columnField(rel.JoinTable, t.Key) == nil {
			return checkJoin(m.db, m.router, s, rel)
		}
		if err := m.plan(reflect.New(rel.JoinTable.ModelType).Interface()); err != nil {
			return err
		}
	}
	return nil
}

// targets returns the targets of a sharded or broadcast table, nil for any other.
func (m *migration) targets(table string) []sharding.Target {
	if !m.router.IsBroadcast(table) {
		return m.router.Targets(table)
	}
	var copies []sharding.Target
	for _, db := range slices.Sorted(maps.Keys(m.shards)) {
		copies = append(copies, sharding.Target{DB: db, Table: table})
	}
	return copies
}

// unrouted migrates a table that is not sharded, with the tables that gorm creates along with it, for
// foreign keys and as join tables. Their definitions may name broadcast tables, so they bypass the
// router.
func (m *migration) unrouted(ctx context.Context, model any) error {
	var sharded []string
	along := migrator.Migrator{Config: migrator.Config{DB: m.db, Dialector: m.db.Dialector}}
	for _, other := range along.ReorderModels([]any{model}, true) {
		s, err := parse(m.db, other)
		if err != nil {
			return err
		}
		if _, ok := m.router.Table(s.Table); ok {
			sharded = append(sharded, s.Table)
		}
	}
	if len(sharded) > 0 {
		table := slices.Min(sharded)
		refused := &sharding.RouteError{Op: "foreign key to", Table: table, Err: sharding.ErrRawTable}
		return fmt.Errorf("%T: no foreign key can lead to or from %s; tag the relation with gorm:\"constraint:-\", or with gorm:\"-:migration\" if that is its join table, whose own model is given to Migrate then: %w", model, table, refused)
	}
	return m.db.WithContext(sharding.Unsharded(ctx)).AutoMigrate(model)
}

// prepare changes the schema that the shard's *gorm.DB keeps for the model and the physical table.
func (job *migrationJob) prepare(db *gorm.DB) error {
	stmt := &gorm.Statement{DB: db}
	if err := stmt.ParseWithSpecialTableName(job.model, job.target.Table); err != nil {
		return err
	}
	for _, f := range stmt.Schema.Fields {
		f.AutoIncrement = false
		if db.Dialector.Name() == "mysql" {
			ownCheck(db, f, job.target.Table)
		} else {
			f.Tag = ownIndexes(f.Tag, job.target.Table)
		}
	}
	compareBytes(db.Dialector, stmt.Schema, job.table)
	return nil
}

// openShard returns the *gorm.DB of a shard. It is separate from the application's because schemas
// are parsed for each physical table, and would otherwise become relations of the application's
// models.
func openShard(db *gorm.DB, pool *sql.DB) *gorm.DB {
	shard, _ := gorm.Open(onShard{db.Dialector, pool}, &gorm.Config{ // onShard returns no error
		NamingStrategy:                           db.NamingStrategy,
		Logger:                                   keptLevel{db.Logger},
		DisableAutomaticPing:                     true,
		IgnoreRelationshipsWhenMigrating:         true, // their tables have targets of their own
		DisableForeignKeyConstraintWhenMigrating: true,
	})
	return shard
}

// onShard is the application's dialect with another pool.
type onShard struct {
	gorm.Dialector

	pool *sql.DB
}

// Initialize does what gorm's dialectors do when they are given a pool.
func (d onShard) Initialize(db *gorm.DB) error {
	db.ConnPool = d.pool
	callbacks.RegisterDefaultCallbacks(db, &callbacks.Config{})
	return nil
}

// ownIndexes appends the table's name to the index names in a tag. Databases other than MySQL and
// MariaDB require index names to differ.
func ownIndexes(tag reflect.StructTag, table string) reflect.StructTag {
	settings := strings.Split(tag.Get("gorm"), ";")
	for i, setting := range settings {
		kind, value, _ := strings.Cut(setting, ":")
		name, _, _ := strings.Cut(value, ",")
		if k := strings.ToUpper(strings.TrimSpace(kind)); name != "" && (k == "INDEX" || k == "UNIQUEINDEX") && !strings.HasSuffix(name, "_"+table) {
			settings[i] = kind + ":" + name + "_" + table + strings.TrimPrefix(value, name)
		}
	}
	return reflect.StructTag("gorm:" + strconv.Quote(strings.Join(settings, ";")) + " " + string(tag)) // reflect uses the first one
}

// checkName matches the name of a check in a tag, as in gorm.
var checkName = regexp.MustCompile(`^[\w-]+$`)

// ownCheck appends the table's name to the name of a field's check, because MySQL requires them to differ in a
// database. A check that the table has without it keeps its name.
func ownCheck(db *gorm.DB, f *schema.Field, table string) {
	name, condition, named := strings.Cut(f.TagSettings["CHECK"], ",")
	if named && checkName.MatchString(name) && !strings.HasSuffix(name, "_"+table) && !db.Migrator().HasConstraint(table, name) {
		f.TagSettings["CHECK"] = name + "_" + table + "," + condition
	}
}

// run migrates all databases at once.
func (m *migration) run(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, len(m.jobs))
	for i, name := range slices.Sorted(maps.Keys(m.jobs)) {
		wg.Go(func() {
			for _, job := range m.jobs[name] {
				db := m.at(ctx, job.target)
				err := job.prepare(db)
				if err == nil {
					err = db.AutoMigrate(job.model)
				}
				if err != nil {
					errs[i] = fmt.Errorf("%s: %w", job.target, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lookups creates the lookup tables of the models' tables, with the types of their columns.
func (m *migration) lookups(ctx context.Context) error {
	var errs []error
	for _, name := range m.planned {
		t, _ := m.router.Table(name)
		for _, l := range t.Lookups {
			errs = append(errs, lookups.Create(ctx, lookups.Config{Router: m.router, Home: m.home, Table: t.Name, Column: l.Column}))
		}
	}
	return errors.Join(errs...)
}

// keptLevel keeps the log level that the application chose: gorm's SQLite dialect calls Debug when
// it reads indexes.
type keptLevel struct{ logger.Interface }

// LogMode returns the logger unchanged.
func (l keptLevel) LogMode(logger.LogLevel) logger.Interface { return l }

// at returns a *gorm.DB for the physical table, with the options that the application's has for new tables.
func (m *migration) at(ctx context.Context, target sharding.Target) *gorm.DB {
	db := m.shards[target.DB].WithContext(ctx).Table(target.Table)
	if options, ok := m.db.Get("gorm:table_options"); ok {
		return db.Set("gorm:table_options", options)
	}
	return db
}
