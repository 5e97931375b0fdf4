// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

var failureTests = []test{
	{"ASourcesErrorSendsNothingAndChangesNothing", sourceError},
	{"ARefusedRowHasNoKeyAfterwards", refusedRow},
	{"ARowThatViolatesAnyConstraintHasNoKeyAfterwards", violating},
	{"ARolledBackCreateLeavesNoKeys", rolledBack},
	{"ARolledBackCreateLeavesNoKeysInAssociations", rolledBackAssociations},
	{"CreateInBatchesLeavesNoKeysOfRolledBackBatches", rolledBackBatches},
	{"ABatchThatFailsTakesNoKeysOfAnotherCallOnTheSameSlice", otherBatches},
	{"AKeyIsKeptWhenItsRowMayExist", ambiguous},
	{"AFailureInsideTheUsersTransactionIsTheStatementsOwn", usersTransaction},
}

var errSource = errors.New("the source fails")

func sourceError(t *testing.T, e *env) {
	e.gen.err = errSource
	people, customer := []Person{{Name: "a"}, {Name: "b"}}, Customer{ID: 1, Name: "c", Labels: []Label{{Name: "l"}}}
	row := map[string]any{"name": "m"}
	for name, err := range map[string]error{
		"slice": e.Create(&people).Error, "association": e.Create(&customer).Error, "map": e.Model(&Person{}).Create(row).Error,
		"transaction": e.Transaction(func(tx *gorm.DB) error { return tx.Create(&Person{Name: "t"}).Error }),
	} {
		var field *gormplugin.FieldError
		if !errors.Is(err, errSource) || !errors.As(err, &field) || field.Field != "ID" {
			t.Errorf("%s: %v", name, err)
		}
	}
	sameList(t, "statements", e.log.take())
	same(t, "keys", people[0].ID+people[1].ID+customer.Labels[0].ID+int64(len(row)), 1)
	derived := Derived{Name: "d"}
	if err := e.Create(&derived).Error; !errors.Is(err, errSource) || derived.Key != nil {
		t.Errorf("embedded: %v, %+v", err, derived)
	}
}

func refusedRow(t *testing.T, e *env) {
	must(t, e.Create(&Person{Name: "taken"}).Error)
	for name, db := range map[string]*gorm.DB{"usual": e.DB, "no transaction": e.Session(&gorm.Session{SkipDefaultTransaction: true})} {
		again := Person{Name: "taken"}
		if err := db.Create(&again).Error; err == nil || again.ID != 0 {
			t.Errorf("%s: %v, id %d", name, err, again.ID)
		}
		must(t, db.First(&again, "name = ?", "taken").Error)
		same(t, "create, on duplicate find", again.ID, id(0))
	}
	row := map[string]any{"name": "taken"}
	if err := e.Model(&Person{}).Create(row).Error; err == nil || len(row) != 1 {
		t.Errorf("%v, %v", err, row)
	}
}

func violating(t *testing.T, e *env) {
	note := "taken"
	must(t, e.Create(&Strict{Note: &note, Size: 1}).Error)
	db := e.Session(&gorm.Session{SkipDefaultTransaction: true})
	other := "other"
	for name, row := range map[string]*Strict{"unique": {Note: &note, Size: 1}, "not null": {Size: 1}, "check": {Note: &other, Size: -1}} {
		if err := db.Create(row).Error; err == nil || row.ID != 0 {
			t.Errorf("%s: %v, id %d", name, err, row.ID)
		}
	}
}

func rolledBack(t *testing.T, e *env) {
	must(t, e.Create(&Person{Name: "taken"}).Error)
	people := []Person{{Name: "a"}, {ID: 4, Name: "b"}, {Name: "taken"}}
	if err := e.Create(&people).Error; err == nil {
		t.Error("no error")
	}
	sameList(t, "a refused slice", []int64{people[0].ID, people[1].ID, people[2].ID}, 0, 4, 0)
	hooked := []Hooked{{Name: "a"}, {Name: "fail after"}}
	if err := e.Create(&hooked).Error; !errors.Is(err, errHook) {
		t.Error(err)
	}
	same(t, "a failed AfterCreate", hooked[0].ID+hooked[1].ID, 0)
	e.sameRows(t, "hookeds", map[string]int64{})
	failing := Hooked{Name: "fail"}
	if err := e.Create(&failing).Error; !errors.Is(err, errHook) || failing.ID != 0 {
		t.Errorf("a failed BeforeCreate: %v, id %d", err, failing.ID)
	}
}

func rolledBackAssociations(t *testing.T, e *env) {
	must(t, e.Create(&Person{ID: 1, Name: "x"}).Error)
	must(t, e.Create(&Badge{ID: 77, Name: "there"}).Error)
	c := fullCustomer("a")
	c.Boss.Name = "a" // the same name as the customer's: the boss is stored before the customer
	if err := e.Create(&c).Error; err == nil {
		t.Fatal("no error")
	}
	same(t, "keys", c.ID+c.Boss.ID+int64(c.Company.ID)+c.Pets[0].ID+c.Notes[0].ID, 0)
	e.sameRows(t, "customers", map[string]int64{})

	second := fullCustomer("b")
	second.Pets[1].ID = -1
	err := e.Callback().Create().Before("gorm:after_create").Register("test:fail", func(db *gorm.DB) {
		if db.Statement.Table == "customers" && db.Statement.Dest == any(&second) {
			_ = db.AddError(errHook)
		}
	})
	must(t, err)
	if err := e.Create(&second).Error; !errors.Is(err, errHook) {
		t.Fatal(err)
	}
	same(t, "keys", second.ID+second.Boss.ID+int64(second.Company.ID)+int64(second.Card.ID)+second.Pets[0].ID+
		second.Notes[0].ID+second.Labels[0].ID+second.Labels[1].ID+second.Badges[0].ID, 0)
	same(t, "a preset", second.Pets[1].ID, -1)
	for _, table := range []string{"customers", "pets", "labels"} {
		e.sameRows(t, table, map[string]int64{})
	}
}

func rolledBackBatches(t *testing.T, e *env) {
	must(t, e.Create(&Person{Name: "taken"}).Error)
	people := []Person{{Name: "a"}, {Name: "b"}, {Name: "c"}, {ID: 9, Name: "d"}, {Name: "taken"}}
	if err := e.CreateInBatches(&people, 2).Error; err == nil {
		t.Error("no error")
	}
	sameList(t, "ids", []int64{people[0].ID, people[1].ID, people[2].ID, people[3].ID, people[4].ID}, 0, 0, 0, 9, 0)
	e.sameRows(t, "people", map[string]int64{"taken": id(0)})

	_ = e.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(people[0:1]).Error)
		if err := tx.CreateInBatches(&people, 2).Error; err == nil {
			t.Error("no error")
		}
		return nil
	})
	if people[0].ID == 0 || people[1].ID+people[2].ID != 0 {
		t.Errorf("inside a transaction, whose own row stays: %+v", people)
	}
}

// otherBatches stores a long slice part by part, and goes on after the part that fails.
func otherBatches(t *testing.T, e *env) {
	must(t, e.Create(&Person{Name: "taken"}).Error)
	people := []Person{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "taken"}, {Name: "d"}, {Name: "e"}}
	must(t, e.Transaction(func(tx *gorm.DB) error {
		for i := 0; i < len(people); i += 2 {
			part := people[i : i+2]
			if err := tx.CreateInBatches(part, 1).Error; (err == nil) != (part[1].Name != "taken") {
				t.Errorf("%s: %v", part[0].Name, err)
			}
		}
		return nil
	}))
	same(t, "keys of the part that failed", people[2].ID+people[3].ID, 0)
	e.sameRows(t, "people", map[string]int64{"taken": id(0), "a": people[0].ID, "b": people[1].ID, "d": people[4].ID, "e": people[5].ID})
}

func ambiguous(t *testing.T, e *env) {
	ctx, cancel := context.WithCancel(t.Context())
	gen := keygen.Func[int64](func(context.Context) (int64, error) { cancel(); return 5, nil })
	db := e.open(t, e.pool, gorm.Config{SkipDefaultTransaction: true}, gormplugin.Config{Generators: keygen.Set{Default: gen}})
	person := Person{Name: "a"}
	if err := db.WithContext(ctx).Create(&person).Error; !errors.Is(err, context.Canceled) || person.ID != 5 {
		t.Errorf("%v, id %d", err, person.ID)
	}
}

func usersTransaction(t *testing.T, e *env) {
	must(t, e.Create(&Person{Name: "taken"}).Error)
	kept, again := Person{Name: "a"}, Person{Name: "taken"}
	must(t, e.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&kept).Error)
		nested := tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&again).Error })
		if nested == nil {
			t.Error("no error")
		}
		return nil
	}))
	same(t, "refused", again.ID, 0)
	e.sameRows(t, "people", map[string]int64{"taken": id(0), "a": kept.ID})
}
