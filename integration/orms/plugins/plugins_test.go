// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-gormigrate/gormigrate/v2"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/plugin/opentelemetry/tracing"
	"gorm.io/plugin/optimisticlock"
	"gorm.io/plugin/prometheus"
	"gorm.io/plugin/soft_delete"

	"github.com/shardid/shardid/sharding"
)

type account struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID    int64
	Amount    int64
	Note      string `gorm:"size:40"`
	UpdatedAt time.Time
	Version   optimisticlock.Version
}

func TestOptimisticLockCountsVersionsOnShardsAsOnOneTable(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open opening) {
		routed, whole := pair(t, open, &account{})
		stale := func(db *gorm.DB, user int64) *account {
			a := of[account](db, user)
			a.Version.Int64--
			return a
		}
		calls := map[string]func(db *gorm.DB) *gorm.DB{
			"1 create": func(db *gorm.DB) *gorm.DB {
				return db.Create(&[]account{{UserID: 1}, {UserID: 2, Amount: 20}, {UserID: 3}, {UserID: 5}, {UserID: 1}})
			},
			"2 column": func(db *gorm.DB) *gorm.DB { return db.Model(of[account](db, 1)).Update("amount", 7) },
			"3 struct": func(db *gorm.DB) *gorm.DB { return db.Model(of[account](db, 1)).Updates(account{Amount: 9}) },
			"3 map":    func(db *gorm.DB) *gorm.DB { return db.Model(of[account](db, 2)).Updates(map[string]any{"amount": 1}) },
			"3 expression": func(db *gorm.DB) *gorm.DB {
				return db.Model(of[account](db, 3)).Update("amount", gorm.Expr("amount + 2"))
			},
			"3 itself":         func(db *gorm.DB) *gorm.DB { a := of[account](db, 5); a.Note = "new"; return db.Updates(a) },
			"4 stale column":   func(db *gorm.DB) *gorm.DB { return db.Model(stale(db, 1)).Update("amount", 70) },
			"4 stale struct":   func(db *gorm.DB) *gorm.DB { return db.Model(stale(db, 2)).Updates(account{Amount: 70}) },
			"4 stale unscoped": func(db *gorm.DB) *gorm.DB { return db.Unscoped().Model(stale(db, 2)).Update("amount", 71) },
			"5 saved":          func(db *gorm.DB) *gorm.DB { a := of[account](db, 3); a.Note = "saved"; return db.Save(a) },
			"5 saved stale":    func(db *gorm.DB) *gorm.DB { return db.Save(stale(db, 5)) }, // an upsert on one table, too
			"6 by key": func(db *gorm.DB) *gorm.DB {
				return db.Model(&account{}).Where("user_id IN ?", []int64{1, 2}).Update("note", "w")
			},
			"7 deleted": func(db *gorm.DB) *gorm.DB { return db.Delete(of[account](db, 3)) },
		}
		for _, name := range sorted(calls) {
			answersAlike(t, routed, whole, []step{{name, func(db *gorm.DB) (any, error) { return all[account](db, calls[name](db)) }}})
		}
	})
}

// Names may be used again once their rows are deleted, because the time of the deletion is in the key.
type seconds struct {
	ID        int64                 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID    int64                 `gorm:"uniqueIndex:seconds_name"`
	Name      string                `gorm:"size:20;uniqueIndex:seconds_name"`
	DeletedAt soft_delete.DeletedAt `gorm:"uniqueIndex:seconds_name"`
}

type milliseconds struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID    int64
	Name      string                `gorm:"size:20"`
	DeletedAt soft_delete.DeletedAt `gorm:"softDelete:milli"`
}

type flagged struct {
	ID      int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID  int64
	Name    string                `gorm:"size:20"`
	Deleted soft_delete.DeletedAt `gorm:"softDelete:flag"`
}

type mixed struct {
	ID        int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID    int64
	Name      string `gorm:"size:20"`
	DeletedAt int64
	Deleted   soft_delete.DeletedAt `gorm:"softDelete:flag,DeletedAtField:DeletedAt,DeletedAtFieldUnit:milli"`
}

func TestSoftDeleteHidesRowsOnShardsAsOnOneTable(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open opening) {
		routed, whole := pair(t, open, &seconds{}, &milliseconds{}, &flagged{}, &mixed{})
		softly(t, routed, whole, func(u int64) seconds { return seconds{UserID: u, Name: "n"} })
		softly(t, routed, whole, func(u int64) milliseconds { return milliseconds{UserID: u, Name: "n"} })
		softly(t, routed, whole, func(u int64) flagged { return flagged{UserID: u, Name: "n"} })
		softly(t, routed, whole, func(u int64) mixed { return mixed{UserID: u, Name: "n"} })
	})
}

func softly[T any](t *testing.T, routed, whole *gorm.DB, row func(user int64) T) {
	t.Helper()
	calls := map[string]func(db *gorm.DB) *gorm.DB{
		"1 create": func(db *gorm.DB) *gorm.DB {
			return db.Create(&[]T{row(1), row(2), row(3), row(4), row(5), row(6), row(7), row(8)})
		},
		"2 a row":           func(db *gorm.DB) *gorm.DB { return db.Delete(of[T](db, 1)) },
		"2 by key":          func(db *gorm.DB) *gorm.DB { return db.Delete(new(T), "user_id = ?", 2) },
		"2 by keys":         func(db *gorm.DB) *gorm.DB { return db.Where("user_id IN ?", []int64{2, 3, 4}).Delete(new(T)) },
		"2 rows":            func(db *gorm.DB) *gorm.DB { return db.Delete(&[]T{*of[T](db, 5), *of[T](db, 6)}) },
		"2 of a model":      func(db *gorm.DB) *gorm.DB { return db.Model(of[T](db, 7)).Delete(new(T)) },
		"3 again":           func(db *gorm.DB) *gorm.DB { return db.Delete(of[T](db, 1)) },
		"3 create again":    func(db *gorm.DB) *gorm.DB { r := row(1); return db.Create(&r) },
		"3 update":          func(db *gorm.DB) *gorm.DB { return db.Model(new(T)).Where("user_id = ?", 2).Update("name", "x") },
		"3 update unscoped": func(db *gorm.DB) *gorm.DB { return db.Unscoped().Model(of[T](db, 2)).Update("name", "y") },
		"4 save":            func(db *gorm.DB) *gorm.DB { return db.Save(of[T](db, 8)) },
		"5 delete for good": func(db *gorm.DB) *gorm.DB { return db.Unscoped().Delete(of[T](db, 3)) },
	}
	for _, name := range sorted(calls) {
		answersAlike(t, routed, whole, []step{
			{fmt.Sprintf("%T: %s", *new(T), name), func(db *gorm.DB) (any, error) { return all[T](db, calls[name](db)) }},
			{fmt.Sprintf("%T: seen after %s", *new(T), name), func(db *gorm.DB) (any, error) { return ids[T](db.Where("user_id = 1").Or("user_id > 1")) }},
		})
	}
}

func TestGormigrateChangesTablesAtHomeAndIsRefusedOnShardedOnes(t *testing.T) {
	type staff struct {
		ID   int64  `gorm:"primaryKey;autoIncrement:false"`
		Name string `gorm:"size:20"`
	}
	onEachDatabase(t, func(t *testing.T, open opening) {
		routed, whole := pair(t, open, &account{})
		migrations := []*gormigrate.Migration{
			{ID: "1", Migrate: func(db *gorm.DB) error { return db.AutoMigrate(&staff{}) }, Rollback: func(db *gorm.DB) error { return db.Migrator().DropTable(&staff{}) }},
			{ID: "2", Migrate: func(db *gorm.DB) error { return db.Create(&account{ID: 9, UserID: 3}).Error }, Rollback: func(db *gorm.DB) error { return db.Delete(&account{}, "user_id = 3").Error }},
		}
		for _, transaction := range []bool{false, true} {
			options := *gormigrate.DefaultOptions
			options.UseTransaction, options.ValidateUnknownMigrations = transaction, true
			done := func(db *gorm.DB, err error) (any, error) {
				rows, err2 := all[account](db, &gorm.DB{})
				return fmt.Sprint(rows, db.Migrator().HasTable(&staff{})), errors.Join(err, err2)
			}
			answersAlike(t, routed, whole, []step{
				{"up", func(db *gorm.DB) (any, error) { return done(db, gormigrate.New(db, &options, migrations).Migrate()) }},
				{"again", func(db *gorm.DB) (any, error) { return done(db, gormigrate.New(db, &options, migrations).Migrate()) }},
				{"back", func(db *gorm.DB) (any, error) {
					return done(db, gormigrate.New(db, &options, migrations).RollbackTo("1"))
				}},
				{"back by one", func(db *gorm.DB) (any, error) {
					return done(db, gormigrate.New(db, &options, migrations).RollbackLast())
				}},
			})
			wrong := &gormigrate.Migration{ID: "3", Migrate: func(db *gorm.DB) error { return db.AutoMigrate(&account{}) }}
			if err := gormigrate.New(routed, &options, append(migrations, wrong)).Migrate(); !errors.Is(err, sharding.ErrRawTable) {
				t.Errorf("AutoMigrate of a sharded table: %v", err)
			}
			if _, err := done(routed, gormigrate.New(routed, &options, migrations).RollbackTo("1")); err != nil {
				t.Error(err)
			}
			if err := gormigrate.New(routed, &options, migrations).RollbackMigration(migrations[0]); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTracingEndsTheSpanOfEachStatement(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open opening) {
		routed, whole := pair(t, open, &account{})
		var names []string
		for _, db := range []*gorm.DB{routed, whole} {
			spans := tracetest.NewSpanRecorder()
			err := db.Use(tracing.NewPlugin(tracing.WithTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans))), tracing.WithoutMetrics()))
			a := account{UserID: 3}
			err = errors.Join(err, db.Create(&a).Error, db.Model(&a).Update("amount", 7).Error, db.Save(&a).Error, db.First(&a).Error,
				db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&a).Error, db.Exec("UPDATE accounts SET amount = 1 WHERE user_id = 3").Error, db.Delete(&a).Error)
			if err != nil {
				t.Error(err)
			}
			var ended []string
			for _, span := range spans.Ended() {
				ended = append(ended, span.Name())
			}
			names = append(names, strings.Join(ended, "; "))
		}
		if names[0] != names[1] || strings.Count(names[0], ";") != 7 { // Save finds a stale version, and upserts
			t.Errorf("%s\nwant %s", names[0], names[1])
		}
	})
}

func TestPrometheusReadsTheStatusOfHome(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open opening) {
		routed, whole := pair(t, open, &account{})
		var found []int
		for i, db := range []*gorm.DB{routed, whole} {
			status := &prometheus.MySQL{Prefix: fmt.Sprintf("test%d_", i), VariableNames: []string{"Threads_running", "Uptime"}}
			p := prometheus.New(prometheus.Config{DBName: t.Name(), RefreshInterval: 3600, MetricsCollector: []prometheus.MetricsCollector{status}})
			if err := db.Use(p); err != nil {
				t.Error(err)
			}
			found = append(found, len(p.Collectors))
			if err := db.WithContext(context.Background()).Create(&account{UserID: 3}).Error; err != nil {
				t.Error(err)
			}
		}
		if found[0] != found[1] || found[0] == 0 && routed.Name() == "mysql" {
			t.Errorf("%d variables, want %d", found[0], found[1])
		}
	})
}
