// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/sharding"
)

// Lease is sharded by a text.
type Lease struct {
	ID     int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	Tenant string
}

// newLeases has a router of leases by tenant, and no tables.
func newLeases(t *testing.T, rule sharding.Rule) (*gorm.DB, *sharding.Router) {
	t.Helper()
	rec := &recorder{}
	dbs := sharding.DBs{"db0": rec.open(t, "db0"), "db1": rec.open(t, "db1")}
	m, err := sharding.Spread([]string{"db0", "db1"}, 4, "leases_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(dbs, sharding.Table{Name: "leases", Key: "tenant", Rule: rule, Map: m, OnMissing: sharding.Refuse})
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, rec.open(t, "home"))
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: sequence(), Router: router})); err != nil {
		t.Fatal(err)
	}
	return db, router
}

// createLeases creates the four tables; definition is that of the tenant, except in the one table that differs.
func createLeases(t *testing.T, router *sharding.Router, definition, table, differs string) {
	t.Helper()
	for _, at := range router.Targets("leases") {
		columns := "(id INTEGER PRIMARY KEY, tenant " + definition + ")"
		if at.Table == table {
			columns = differs
		}
		must(t, router.DB(at.DB), "CREATE TABLE "+at.Table+" "+columns)
	}
}

func TestCheckFindsATextKeyThatIsNotComparedByItsBytes(t *testing.T) {
	db, router := newLeases(t, sharding.HashText(4))
	if err := gormplugin.Check(db, &Lease{}); !errors.Is(err, gormplugin.ErrNoTable) || !strings.Contains(err.Error(), "db0/leases_0") {
		t.Errorf("without tables: %v", err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &Lease{}); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Check(db, &Lease{}); err != nil {
		t.Errorf("of Migrate: %v", err)
	}
	must(t, router.DB("db1"), "DROP TABLE leases_3")
	must(t, router.DB("db1"), "CREATE TABLE leases_3 (id INTEGER PRIMARY KEY, tenant TEXT COLLATE NOCASE)")
	if err := gormplugin.Check(db, &Lease{}); !errors.Is(err, gormplugin.ErrCollation) || !strings.Contains(err.Error(), "db1/leases_3: column tenant: ") || !strings.Contains(err.Error(), "NOCASE") {
		t.Errorf("of one shard: %v", err)
	}
	integers, router := newLeases(t, sharding.Low(2))
	createLeases(t, router, "TEXT COLLATE NOCASE", "", "")
	if err := gormplugin.Check(integers, &Lease{}); err != nil {
		t.Errorf("of texts with integers: %v", err)
	}
}

// Visit has the fields of Lease, and its keys come from another source.
type Visit struct {
	ID     int64 `gorm:"primaryKey;autoIncrement:false"`
	Tenant string
}

func (Visit) TableName() string { return "leases" }

// Broken has a tag that names no generator.
type Broken struct {
	ID     int64 `keygen:"nobody"`
	Tenant string
}

func (Broken) TableName() string { return "leases" }

func TestCheckReadsTheColumnsOfAModelWhoseKeysItDoesNotFill(t *testing.T) {
	db, router := newLeases(t, sharding.HashText(4))
	createLeases(t, router, "TEXT COLLATE NOCASE", "", "")
	for model, also := range map[any]error{&Visit{}: nil, &Broken{}: gormplugin.ErrUnknownSource} {
		if err := gormplugin.Check(db, model); also != nil && !errors.Is(err, also) || !errors.Is(err, gormplugin.ErrCollation) {
			t.Errorf("%T: %v", model, err)
		}
	}
}

func TestCheckAcceptsARoutedModelWithoutAGeneratorUnlessAShardNumbersItsKey(t *testing.T) {
	db, router := newLeases(t, sharding.HashText(4))
	createLeases(t, router, "TEXT", "", "")
	if err := gormplugin.Check(db, &Visit{}); err != nil {
		t.Error(err)
	}
	if err := gormplugin.Check(db, &User{}); !errors.Is(err, gormplugin.ErrUnmanaged) || !strings.Contains(err.Error(), "Config.Models") {
		t.Errorf("of a table that is not routed: %v", err)
	}
	must(t, router.DB("db1"), "DROP TABLE leases_3")
	must(t, router.DB("db1"), "CREATE TABLE leases_3 (id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT)")
	var field *gormplugin.FieldError
	if err := gormplugin.Check(db, &Visit{}); !errors.Is(err, gormplugin.ErrAutoIncrement) || !errors.As(err, &field) || field.Field != "ID" || !strings.Contains(err.Error(), "db1/leases_3") {
		t.Errorf("of a shard with AUTOINCREMENT: %v", err)
	}
}

func TestCheckAcceptsAModelOfABroadcastTableWithoutAGenerator(t *testing.T) {
	rec := &recorder{}
	m, err := sharding.Spread([]string{"db0"}, 4, "leases_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"db0": rec.open(t, "db0")},
		sharding.Table{Name: "leases", Key: "tenant", Rule: sharding.HashText(4), Map: m}, sharding.Broadcast("users"))
	if err != nil {
		t.Fatal(err)
	}
	db := openGORM(t, rec.open(t, "home"))
	if err := db.Use(gormplugin.New(gormplugin.Config{Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Check(db, &User{}); err != nil {
		t.Error(err)
	}
}

func TestCheckFindsAKeyColumnThatDoesNotFitItsRule(t *testing.T) {
	for typ, of := range map[string]struct {
		rule sharding.Rule
		fits string
	}{"INTEGER": {sharding.HashText(4), "TEXT"}, "REAL": {sharding.Low(2), "INTEGER"}, "STRING": {sharding.CompatText(4), "TEXT"}} {
		db, router := newLeases(t, of.rule)
		createLeases(t, router, of.fits, "leases_3", "(id INTEGER PRIMARY KEY, tenant "+typ+")")
		if err := gormplugin.Check(db, &Lease{}); !errors.Is(err, gormplugin.ErrKeyColumn) || errors.Is(err, gormplugin.ErrCollation) || !strings.Contains(err.Error(), "db1/leases_3: column tenant: ") {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

// Databases compare a text with the number 5 in different ways: with SQLite '5' equals it and '05'
// does not, and with MySQL '5', '05' and ' 5.0' do.
func TestANumberInAConditionOnATextLeadsToNoShard(t *testing.T) {
	db, _ := newLeases(t, sharding.HashText(4))
	if err := gormplugin.Migrate(t.Context(), db, &Lease{}); err != nil {
		t.Fatal(err)
	}
	for _, condition := range []string{"tenant = 5", "tenant = 05", "tenant = 0x5", "tenant = 1e3", "tenant = 5.00", "tenant IN (05, 0x5)"} {
		var refused *sharding.RouteError
		if err := db.Where(condition).Find(&[]Lease{}).Error; !errors.As(err, &refused) {
			t.Errorf("%s: %v", condition, err)
		}
	}
}
