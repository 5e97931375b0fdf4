// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
)

var conflictTests = []test{
	{"DoNothingTellsInsertedFromSkippedRows", doNothing},
	{"DoNothingOfOneRowThatIsSkipped", doNothingOne},
	{"DoNothingOfMapsTellsInsertedFromSkippedRows", doNothingMaps},
	{"DoNothingBesideColumnsThatTheDatabaseFills", doNothingWithDefaults},
	{"DoNothingOfABusinessNumber", doNothingNumber},
	{"DoNothingOnAHandleThatSavedAssociations", doNothingAgain},
	{"DoUpdateGivesTheKeyOfTheRowInTheTable", doUpdate},
	{"UpdateAllGivesTheKeyOfTheRowInTheTable", updateAll},
	{"DoUpdateOfABatchKeepsNoKeyThatIsInNoRow", doUpdateBatch},
	{"DoUpdateWithAConditionThatIsFalse", doUpdateWhere},
	{"ReturningOfTheUsersIsKept", usersReturning},
	{"WithoutVerifyingOnlyProvenKeysAreKept", noVerify},
	{"AStatementThatIsUsedAgainHasItsOwnClauses", usedAgain},
	{"UpsertsThatMeetNothingAreAnInsert", upsertOfNew},
}

// onName returns a conflict on the unique name.
func onName(update ...string) clause.OnConflict {
	on := clause.OnConflict{Columns: []clause.Column{{Name: "name"}}}
	if len(update) == 0 {
		on.DoNothing = true
	} else {
		on.DoUpdates = clause.AssignmentColumns(update)
	}
	return on
}

// anything returns DO NOTHING without a target on PostgreSQL and SQLite, in the form that gorm
// writes for associations.
func anything() clause.OnConflict { return clause.OnConflict{DoNothing: true} }

// seeded creates "old" with the id 3.
func seeded(t *testing.T, e *env) {
	t.Helper()
	must(t, e.Create(&Person{ID: 3, Name: "old", Age: 1}).Error)
	e.log.take()
}

func doNothing(t *testing.T, e *env) {
	seeded(t, e)
	people := []Person{{Name: "a"}, {Name: "old"}, {Name: "b"}, {ID: 8, Name: "c"}}
	tx := e.Clauses(anything()).Create(&people)
	must(t, tx.Error)
	skipped := int64(0)
	if e.Finds == All {
		skipped = 3
	}
	sameList(t, "ids", []int64{people[0].ID, people[1].ID, people[2].ID, people[3].ID}, id(0), skipped, id(2), 8)
	same(t, "rows", tx.RowsAffected, 3)
	e.sameRows(t, "people", map[string]int64{"old": 3, "a": id(0), "b": id(2), "c": 8})

	none := []*Person{{Name: "a"}, {Name: "b"}}
	tx = e.Clauses(onName()).Create(none)
	must(t, tx.Error)
	same(t, "rows of none", tx.RowsAffected, 0)
	if e.Finds != All {
		same(t, "ids of none", none[0].ID+none[1].ID, 0)
	} else {
		same(t, "ids of none", none[0].ID*10+none[1].ID, id(0)*10+id(2))
	}
}

func doNothingOne(t *testing.T, e *env) {
	seeded(t, e)
	old, fresh := Person{Name: "old"}, Person{Name: "a"}
	tx := e.Clauses(anything()).Create(&old)
	must(t, tx.Error)
	want := int64(0)
	if e.Finds != None {
		want = 3
	}
	same(t, "id", old.ID, want)
	same(t, "rows", tx.RowsAffected, 0)
	tx = e.Clauses(anything()).Create(&fresh)
	must(t, tx.Error)
	same(t, "id of an inserted row", fresh.ID, id(1))
	same(t, "rows", tx.RowsAffected, 1)
	e.sameRows(t, "people", map[string]int64{"old": 3, "a": id(1)})
}

func doNothingMaps(t *testing.T, e *env) {
	seeded(t, e)
	maps := []map[string]any{{"name": "a"}, {"name": "old"}}
	tx := e.Model(&Person{}).Clauses(anything()).Create(&maps)
	must(t, tx.Error)
	same(t, "rows", tx.RowsAffected, 1)
	same(t, "inserted", maps[0]["id"], any(id(0)))
	if v, there := maps[1]["id"]; there {
		t.Errorf("skipped: %v", v)
	}
	same(t, "maps", len(maps), 2)
	one := map[string]any{"name": "old"}
	tx = e.Model(&Person{}).Clauses(anything()).Create(one)
	must(t, tx.Error)
	if e.Finds != None {
		same(t, "one", one["id"], any(int64(3)))
	} else if _, there := one["id"]; there {
		t.Errorf("one that was skipped: %v", one)
	}
	same(t, "rows", tx.RowsAffected, 0)
	e.sameRows(t, "people", map[string]int64{"old": 3, "a": id(0)})
}

func doNothingWithDefaults(t *testing.T, e *env) {
	must(t, e.Create(&Rated{ID: 3, Name: "old", Rate: 9}).Error)
	rated := []Rated{{Name: "old"}, {Name: "a"}, {Name: "old"}, {Name: "b"}, {Name: "c"}}
	tx := e.Clauses(anything()).Create(&rated)
	must(t, tx.Error)
	same(t, "rows", tx.RowsAffected, 3)
	var stored []Rated
	must(t, e.bare(t).Order("name").Find(&stored, "id > 3").Error)
	sameList(t, "stored", stored, Rated{id(1), "a", 5}, Rated{id(3), "b", 5}, Rated{id(4), "c", 5})
	skipped := int64(0)
	if e.Finds == All {
		skipped = 3
	}
	for i, want := range []int64{skipped, id(1), skipped, id(3), id(4)} {
		same(t, rated[i].Name, rated[i].ID, want)
	}
	if e.Family != "mysql" { // MySQL and MariaDB return no rows or all
		sameList(t, "rates", []int64{rated[0].Rate, rated[1].Rate, rated[3].Rate, rated[4].Rate}, 0, 5, 5, 5)
	}
}

func doNothingNumber(t *testing.T, e *env) {
	must(t, e.Create(&Invoice{Name: "old"}).Error)
	invoices := []Invoice{{Name: "old"}, {Name: "a"}}
	must(t, e.Clauses(anything()).Create(&invoices).Error)
	var stored Invoice
	must(t, e.bare(t).First(&stored, "name = ?", "a").Error)
	same(t, "inserted", invoices[1].Number, stored.Number)
	if n := invoices[0].Number; n != 0 && n != id(0) {
		t.Errorf("skipped: the number %d is in no row", n)
	}
}

// doNothingAgain uses a *gorm.DB that still has the associations of another row in its settings.
func doNothingAgain(t *testing.T, e *env) {
	one, again := Customer{Name: "a", Labels: []Label{{Name: "l"}}}, Customer{Name: "a"}
	tx := e.Create(&one)
	must(t, errors.Join(tx.Error, tx.Clauses(anything()).Create(&again).Error))
	want := int64(0)
	if e.Finds != None {
		want = one.ID
	}
	same(t, "id", again.ID, want)
}

func doUpdate(t *testing.T, e *env) {
	seeded(t, e)
	again, fresh := Person{Name: "old", Age: 2}, Person{Name: "a", Age: 3}
	must(t, errors.Join(e.Clauses(onName("age")).Create(&again).Error, e.Clauses(onName("age")).Create(&fresh).Error))
	same(t, "updated", again.ID, 3)
	same(t, "inserted", fresh.ID, id(1))
	e.sameRows(t, "people", map[string]int64{"old": 3, "a": id(1)})
	var old Person
	must(t, e.bare(t).First(&old, 3).Error)
	same(t, "age", old.Age, 2)
	row := map[string]any{"name": "old", "age": 4}
	must(t, e.Model(&Person{}).Clauses(onName("age")).Create(row).Error)
	same(t, "map", row["id"], any(int64(3)))
}

func updateAll(t *testing.T, e *env) {
	seeded(t, e)
	again := Person{Name: "old", Age: 2}
	must(t, e.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, UpdateAll: true}).Create(&again).Error)
	same(t, "updated", again, Person{3, "old", 2})
	e.sameRows(t, "people", map[string]int64{"old": 3})
}

func doUpdateBatch(t *testing.T, e *env) {
	seeded(t, e)
	people := []Person{{Name: "a"}, {Name: "old", Age: 2}, {Name: "b"}}
	must(t, e.Clauses(onName("age")).Create(&people).Error)
	existing := int64(3)
	if e.Finds == Single {
		existing = 0 // LAST_INSERT_ID returns one row's key only
	}
	sameList(t, "ids", []int64{people[0].ID, people[1].ID, people[2].ID}, id(0), existing, id(2))
	e.sameRows(t, "people", map[string]int64{"old": 3, "a": id(0), "b": id(2)})
}

func doUpdateWhere(t *testing.T, e *env) {
	if e.Family == "mysql" {
		return // MySQL has no condition there
	}
	seeded(t, e)
	on := onName("age")
	on.Where = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "people.age > 100"}}}
	again, people := Person{Name: "old", Age: 2}, []Person{{Name: "a"}, {Name: "old", Age: 2}}
	must(t, errors.Join(e.Clauses(on).Create(&again).Error, e.Clauses(on).Create(&people).Error))
	same(t, "untouched", again.ID, 0)
	sameList(t, "ids", []int64{people[0].ID, people[1].ID}, id(1), 0)
}

func usersReturning(t *testing.T, e *env) {
	if e.Finds == Single {
		return // MySQL has no RETURNING
	}
	seeded(t, e)
	again := Person{Name: "old", Age: 2}
	must(t, e.Clauses(onName("age"), clause.Returning{Columns: []clause.Column{{Name: "age"}}}).Create(&again).Error)
	same(t, "columns", again, Person{3, "old", 2})
	people := []Person{{Name: "a"}, {Name: "old", Age: 5}}
	must(t, e.Clauses(onName("age"), clause.Returning{}).Create(&people).Error)
	sameList(t, "everything", people, Person{id(1), "a", 0}, Person{3, "old", 5})
	fresh := Person{Name: "b"}
	must(t, e.Clauses(clause.Returning{}).Create(&fresh).Error)
	same(t, "without a conflict", fresh, Person{id(3), "b", 0})
}

func noVerify(t *testing.T, e *env) {
	seeded(t, e)
	db := e.open(t, e.pool, gorm.Config{}, gormplugin.Config{NoVerify: true})
	e.log.take()
	maps := []map[string]any{{"name": "a"}, {"name": "old"}}
	must(t, db.Model(&Person{}).Clauses(anything()).Create(maps).Error)
	same(t, "statements", len(e.log.take()), 1)
	for _, m := range maps {
		if v, there := m["id"]; there {
			t.Errorf("%v is not proven", v)
		}
	}
}

func usedAgain(t *testing.T, e *env) {
	seeded(t, e)
	tx := e.Clauses(onName("age"))
	one, two := Person{Name: "old", Age: 5}, Person{Name: "old", Age: 6}
	must(t, tx.Create(&one).Error)
	before := len(tx.Statement.Clauses)
	must(t, tx.Create(&two).Error)
	same(t, "ids", one.ID*10+two.ID, 33)
	same(t, "clauses", len(tx.Statement.Clauses), before)
	if on, ok := tx.Statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict); !ok || len(on.DoUpdates) != 1 {
		t.Errorf("the user's clause became %+v", tx.Statement.Clauses["ON CONFLICT"].Expression)
	}
	if _, left := tx.Statement.Clauses["RETURNING"]; left {
		t.Error("a RETURNING clause was left")
	}
}

func upsertOfNew(t *testing.T, e *env) {
	people := []Person{{Name: "a"}, {Name: "b"}}
	e.log.take()
	must(t, e.Clauses(onName("age")).Create(&people).Error)
	sameList(t, "ids", []int64{people[0].ID, people[1].ID}, id(0), id(1))
	same(t, "statements", len(e.log.take()), 1)
	c := Customer{Name: "c", Pets: []Pet{{Name: "x"}, {Name: "y"}}}
	must(t, e.Create(&c).Error)
	same(t, "statements with a has many", len(e.log.take()), 2)
	e.sameRows(t, "pets", map[string]int64{"x": 500, "y": 501})
}
