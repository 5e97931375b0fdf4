// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// Ticket has indexes with and without names, and a relation.
type Ticket struct {
	ID       int64     `gorm:"primaryKey" keygen:""`
	Seat     string    `gorm:"uniqueIndex:seat_once,priority:1"`
	Day      string    `gorm:"uniqueIndex:seat_once;index"`
	Note     string    `gorm:"size:50"`
	Stickers []Sticker `gorm:"constraint:-"`
}

// Sticker belongs to a ticket and is not sharded.
type Sticker struct {
	ID       int64 `gorm:"primaryKey;autoIncrement:false"`
	TicketID int64
}

// ticketOffice is four shards of tickets in two empty databases, and a home.
func ticketOffice(t *testing.T) (*gorm.DB, sharding.DBs, *recorder) {
	t.Helper()
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	m, err := sharding.Spread([]string{"db0", "db1"}, 4, "tickets_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "tickets", Key: "id", Rule: sharding.Low(2), Map: m})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, rec.open(t, "home"))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: sequence(), Router: router})); err != nil {
		t.Fatal(err)
	}
	return db, dbs, rec
}

func TestMigrateCreatesTheTableOfEveryTarget(t *testing.T) {
	db, dbs, rec := ticketOffice(t)
	for range 2 { // it may be run again
		if err := gormplugin.Migrate(t.Context(), db, &Ticket{}, &Sticker{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"db0": "seat_once_tickets_0 seat_once_tickets_2 tickets_0 tickets_2",
		"db1": "seat_once_tickets_1 seat_once_tickets_3 tickets_1 tickets_3",
	} {
		if got := objectsOf(t, dbs[name]); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	home, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if got := objectsOf(t, home); got != "stickers" {
		t.Errorf("home has %s", got)
	}
	for _, event := range rec.take() {
		if strings.Contains(event, "AUTOINCREMENT") || strings.Contains(event, "CONSTRAINT `fk_") {
			t.Error(event)
		}
	}
	for id := range int64(8) {
		if err := db.Create(&Ticket{ID: id + 1, Seat: strconv.FormatInt(id, 10)}).Error; err != nil {
			t.Error(err)
		}
	}
}

// Pass is stored in the table of tickets.
type Pass struct {
	ID  int64 `gorm:"primaryKey" keygen:""`
	Day string
}

func TestMigrateAndCheckUseTheTableThatIsNamed(t *testing.T) {
	db, dbs, _ := ticketOffice(t)
	named := db.Table("tickets")
	if err := gormplugin.Migrate(t.Context(), named, &Pass{}); err != nil {
		t.Fatal(err)
	}
	if got := objectsOf(t, dbs["db0"]); got != "tickets_0 tickets_2" {
		t.Errorf("db0 has %s", got)
	}
	if err := gormplugin.Check(named, &Pass{}); err != nil {
		t.Error(err)
	}
	if err := gormplugin.Check(named, &Sticker{}); err != nil {
		t.Errorf("the application gives the keys of a sharded model: %v", err)
	}
	if err := gormplugin.Check(db, &Sticker{}); !errors.Is(err, gormplugin.ErrUnmanaged) {
		t.Errorf("a model of a table at home: %v", err)
	}
	home, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if got := objectsOf(t, home); got != "" {
		t.Errorf("home has %s", got)
	}
}

func TestMigrateAddsWhatATargetLacksAndDropsNothing(t *testing.T) {
	db, dbs, _ := ticketOffice(t)
	if err := gormplugin.Migrate(t.Context(), db, &Ticket{}); err != nil {
		t.Fatal(err)
	}
	must(t, dbs["db0"], "ALTER TABLE tickets_2 DROP COLUMN note")
	must(t, dbs["db0"], "DROP INDEX seat_once_tickets_2")
	must(t, dbs["db1"], "ALTER TABLE tickets_3 ADD COLUMN forgotten text")
	if err := gormplugin.Migrate(t.Context(), db, &Ticket{}); err != nil {
		t.Fatal(err)
	}
	must(t, dbs["db0"], "UPDATE tickets_2 SET note = '' WHERE 1 = 0")
	must(t, dbs["db1"], "UPDATE tickets_3 SET forgotten = '' WHERE 1 = 0")
	if got := objectsOf(t, dbs["db0"]); !strings.Contains(got, "seat_once_tickets_2") {
		t.Errorf("db0 has %s", got)
	}
}

func TestMigrateContinuesOnTheOtherDatabasesAndNamesTheOneThatFailed(t *testing.T) {
	db, dbs, _ := ticketOffice(t)
	must(t, dbs["db0"], "CREATE VIEW tickets_0 AS SELECT 1 AS id")
	err := gormplugin.Migrate(t.Context(), db, &Ticket{})
	if err == nil || !strings.Contains(err.Error(), "db0/tickets_0") || strings.Contains(err.Error(), "db1/") {
		t.Errorf("the error is %v", err)
	}
	if got := objectsOf(t, dbs["db1"]); !strings.Contains(got, "tickets_3") {
		t.Errorf("db1 has %s", got)
	}
}

func TestMigrateStopsWhenItsContextEnds(t *testing.T) {
	db, dbs, _ := ticketOffice(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gormplugin.Migrate(ctx, db, &Ticket{}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if got := objectsOf(t, dbs["db0"]); got != "" {
		t.Errorf("db0 has %s", got)
	}
}

// Season has a copy in every database.
type Season struct {
	ID   int64
	Name string `gorm:"unique"`
}

func TestMigrateCreatesACopyOfABroadcastTableInEveryDatabaseOnce(t *testing.T) {
	for _, home := range []string{"home", "db0"} {
		rec := &recorder{}
		dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
		m, err := sharding.Spread([]string{"db0", "db1"}, 2, "tickets_%d")
		if err != nil {
			t.Fatal(err)
		}
		router, err := sharding.New(dbs, sharding.Broadcast("seasons"), sharding.Table{Name: "tickets", Key: "id", Rule: sharding.Low(1), Map: m})
		if err != nil {
			t.Fatal(err)
		}
		pool := dbs[home]
		if pool == nil {
			pool = rec.open(t, home)
		}
		db := openGORM(t, pool)
		if err := db.Use(gormplugin.New(gormplugin.Config{Generators: sequence(), Router: router})); err != nil {
			t.Fatal(err)
		}
		if err := gormplugin.Migrate(t.Context(), db, &Season{}); err != nil {
			t.Fatal(err)
		}
		made := 0
		for _, event := range rec.take() {
			if strings.Contains(event, "CREATE TABLE `seasons`") {
				made++
			}
		}
		if want := map[string]int{"home": 3, "db0": 2}[home]; made != want {
			t.Errorf("with %s as home the table was made %d times, not %d", home, made, want)
		}
		if err := db.First(&Season{}, 1).Error; !errors.Is(err, gorm.ErrRecordNotFound) {
			t.Error(err)
		}
	}
}

// Album is not sharded and has a foreign key to what is.
type Album struct {
	ID       int64 `gorm:"primaryKey;autoIncrement:false"`
	TicketID int64
	Ticket   Ticket
}

// Page is not sharded, and its foreign key leads to a table that has one to what is.
type Page struct {
	ID      int64 `gorm:"primaryKey;autoIncrement:false"`
	AlbumID int64
	Album   Album
}

// Band is not sharded, and its join table refers to what is.
type Band struct {
	ID      int64    `gorm:"primaryKey;autoIncrement:false"`
	Tickets []Ticket `gorm:"many2many:band_tickets"`
}

func TestMigrateSaysThatNoForeignKeyLeadsToAShard(t *testing.T) {
	for _, model := range []any{&Album{}, &Page{}, &Band{}} {
		db, _, rec := ticketOffice(t)
		err := gormplugin.Migrate(t.Context(), db, &Ticket{}, model)
		if !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(err.Error(), "constraint:-") {
			t.Errorf("%T: the error is %v", model, err)
		}
		if sent := rec.take(); slices.ContainsFunc(sent, func(event string) bool { return strings.HasPrefix(event, "home: CREATE") }) {
			t.Errorf("%T: %q", model, sent)
		}
	}
}

// Crowd is not sharded, and its join table is.
type Crowd struct {
	ID       int64     `gorm:"primaryKey;autoIncrement:false"`
	Stickers []Sticker `gorm:"many2many:tickets;joinForeignKey:ID;constraint:-"`
}

func TestMigrateSaysHowAJoinTableIsSharded(t *testing.T) {
	db, _, _ := ticketOffice(t)
	if err := gormplugin.Migrate(t.Context(), db, &Crowd{}); !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(err.Error(), "-:migration") {
		t.Errorf("the error is %v", err)
	}
	type Crowd struct {
		ID       int64     `gorm:"primaryKey;autoIncrement:false"`
		Stickers []Sticker `gorm:"many2many:tickets;joinForeignKey:ID;-:migration"`
	}
	if err := gormplugin.Migrate(t.Context(), db, &Crowd{}); err != nil {
		t.Error(err)
	}
}

func TestMigrateNeedsThePlugin(t *testing.T) {
	db := openGORM(t, (&recorder{}).open(t, "home"))
	if err := gormplugin.Migrate(t.Context(), db, &Sticker{}); !errors.Is(err, gormplugin.ErrNotLoaded) {
		t.Errorf("the error is %v", err)
	}
}

// objectsOf lists tables and the named indexes.
func objectsOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND name NOT LIKE 'idx_%' ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestGormsOwnMigratorQueriesTheHomeDatabase(t *testing.T) {
	c := newCluster(t)
	target, err := c.router.Target("papers", 5)
	if err != nil {
		t.Fatal(err)
	}
	must(t, c.home, "DROP TABLE papers")
	for _, table := range []any{&Paper{}, target.Table} {
		if c.Migrator().HasTable(table) {
			t.Errorf("%v is seen", table)
		}
	}
	if c.Migrator().HasColumn(&Paper{}, "title") || c.Migrator().HasIndex(&Paper{}, "id") {
		t.Error("a column or an index of papers is seen")
	}
	if !c.Migrator().HasTable(&User{}) {
		t.Error("a table at home is not seen")
	}
	for name, err := range map[string]error{"AutoMigrate": c.AutoMigrate(&Paper{}), "CreateTable": c.Migrator().CreateTable(&Paper{})} {
		if !errors.Is(err, sharding.ErrRawTable) || !strings.Contains(err.Error(), "gormplugin.Migrate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAutoMigrateOfAShardedTableSaysWhatToCallInstead(t *testing.T) {
	db, _, _ := ticketOffice(t)
	const want = "sharding: CREATE of tickets refused: its text leads to no shard: DDL of sharded and broadcast tables is not routed; " +
		"create and change its tables on every target with shardid ddl or gormplugin.Migrate, in place of GORM's AutoMigrate, which also creates the tables of relations; or run the statement for each of Router.Targets on Router.DB"
	for name, err := range map[string]error{
		"its own":       db.AutoMigrate(&Ticket{}),
		"of a relation": db.AutoMigrate(&Page{}),
		"CreateTable":   db.Migrator().CreateTable(&Ticket{}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
}
