// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
)

var statementTests = []test{
	{"ASelectWithoutTheKeyStillSendsIt", selectWithoutKey},
	{"OmittedAndUnwritableKeysAreLeftAlone", omitted},
	{"DryRunAndToSQLShowTheKeyAndTakeItBack", dryRun},
	{"TheSameTextEveryTime", sameText},
	{"SkipHooksSessionsAndTransactionsAreAsEver", modes},
	{"BeforeCreateHasTheLastWord", beforeCreate},
	{"TheOptionHooksFillsBeforeTheHooks", earlyHooks},
	{"CallbacksOfOthersFindFieldsByTheirNames", othersCallbacks},
	{"ManyGoroutinesAndSeveralDBsAtOnce", atOnce},
	{"APanicInAStatementHarmsNoOther", panics},
	{"CheckFindsWhatWouldGoWrong", check},
}

func selectWithoutKey(t *testing.T, e *env) {
	person := Person{Name: "a", Age: 7}
	tx := e.Select("name").Create(&person)
	must(t, tx.Error)
	e.sameRows(t, "people", map[string]int64{"a": id(0)})
	same(t, "id", person.ID, id(0))
	sameList(t, "the user's Selects", tx.Statement.Selects, "name")
	maps := []map[string]any{{"name": "b", "age": 1}}
	must(t, e.Model(&Person{}).Select("name").Create(maps).Error)
	same(t, "map", maps[0]["id"], any(id(1)))
}

func omitted(t *testing.T, e *env) {
	omits, never := Person{Name: "a"}, Never{Name: "n"}
	must(t, errors.Join(e.Omit("id").Create(&omits).Error, e.Create(&never).Error,
		e.Create(&ReadOnly{Name: "r"}).Error, e.Create(&UpdateOnly{Name: "u"}).Error))
	sameList(t, "reservations", e.gen.take())
	if got := e.rows(t, "people")["a"]; !e.gen.isDatabases(got) || omits.ID != got {
		t.Errorf("Omit: %d in the table, %d in the struct", got, omits.ID)
	}
	rows := e.rows(t, "legacies")
	for _, name := range []string{"n", "r", "u"} {
		if !e.gen.isDatabases(rows[name]) {
			t.Errorf("%s: id %d is not the database's", name, rows[name])
		}
	}
	must(t, e.Omit("age").Create(&Person{Name: "b"}).Error)
	same(t, "Omit of another field", e.people(t)["b"], id(0))
}

func dryRun(t *testing.T, e *env) {
	people := []Person{{Name: "a"}, {ID: 5, Name: "b"}}
	tx := e.Session(&gorm.Session{DryRun: true}).Create(&people)
	must(t, tx.Error)
	same(t, "first argument", tx.Statement.Vars[0], any(id(0)))
	sameList(t, "ids", []int64{people[0].ID, people[1].ID}, 0, 5)
	customer := fullCustomer("c")
	sql := e.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Create(&customer) })
	if !strings.Contains(sql, strconv.FormatInt(first, 10)[:3]) || customer.ID+int64(customer.Company.ID)+customer.Pets[0].ID != 0 {
		t.Errorf("%s; struct %+v", sql, customer)
	}
	m := map[string]any{"name": "m"}
	must(t, e.Session(&gorm.Session{DryRun: true}).Model(&Person{}).Create(m).Error)
	same(t, "entries", len(m), 1)
	e.sameRows(t, "people", map[string]int64{})
}

func sameText(t *testing.T, e *env) {
	text := func(dest any) string {
		tx := e.Session(&gorm.Session{DryRun: true}).Create(dest)
		must(t, tx.Error)
		return tx.Statement.SQL.String()
	}
	want := text(&Person{ID: 1, Name: "a"})
	for range 5 {
		same(t, "text", text(&Person{Name: "a"}), want)
	}
	same(t, "of a slice", text(&[]Person{{Name: "a"}, {ID: 2}}), text(&[]Person{{ID: 1, Name: "a"}, {}}))
}

func modes(t *testing.T, e *env) {
	var ids []int64
	create := func(db *gorm.DB, name string) error {
		p := Person{Name: name}
		err := db.Create(&p).Error
		ids = append(ids, p.ID)
		return err
	}
	must(t, errors.Join(
		create(e.Session(&gorm.Session{SkipHooks: true}), "a"),
		create(e.Session(&gorm.Session{PrepareStmt: true}), "b"),
		create(e.Session(&gorm.Session{NewDB: true, SkipDefaultTransaction: true}), "c"),
		e.Transaction(func(tx *gorm.DB) error {
			return errors.Join(create(tx, "d"), tx.Transaction(func(tx *gorm.DB) error { return create(tx, "e") }))
		}),
	))
	tx := e.Begin()
	must(t, errors.Join(create(tx, "f"), tx.Rollback().Error))
	sameList(t, "ids", ids, id(0), id(1), id(2), id(3), id(4), id(5))
	e.sameRows(t, "people", map[string]int64{"a": id(0), "b": id(1), "c": id(2), "d": id(3), "e": id(4)})
}

func beforeCreate(t *testing.T, e *env) {
	hooked := []Hooked{{Name: "own"}, {Name: "plain"}, {ID: 7, Name: "empty"}}
	must(t, e.Create(&hooked).Error)
	sameList(t, "ids", []int64{hooked[0].ID, hooked[1].ID, hooked[2].ID}, 42, id(0), id(1))
	sameList(t, "what the hooks saw", []int64{hooked[0].saw, hooked[1].saw, hooked[2].saw}, 0, 0, 7)
	e.sameRows(t, "hookeds", map[string]int64{"own": 42, "plain": id(0), "empty": id(1)})
}

func earlyHooks(t *testing.T, e *env) {
	early := []Dawn{{Name: "a"}, {ID: 3, Name: "b"}}
	must(t, e.Create(&early).Error)
	sameList(t, "what the hooks saw", []int64{early[0].saw, early[1].saw}, id(0), 3)
	e.sameRows(t, "dawns", map[string]int64{"a": id(0), "b": 3})
}

// othersCallbacks registers a callback after the plugin, which runs between the plugin and the
// INSERT.
func othersCallbacks(t *testing.T, e *env) {
	must(t, e.Callback().Create().Before("gorm:create").Register("test:others", func(db *gorm.DB) {
		db.Statement.SetColumn("Rate", int64(9))
		db.Statement.Omit("Name")
	}))
	rated := Rated{Name: "a"}
	must(t, e.Create(&rated).Error)
	var stored Rated
	must(t, e.bare(t).Select("id", "COALESCE(name, 'none') AS name", "rate").First(&stored).Error)
	same(t, "stored", stored, Rated{id(0), "none", 9})
}

func atOnce(t *testing.T, e *env) {
	other := e.open(t, e.pool, gorm.Config{SkipDefaultTransaction: true}, gormplugin.Config{})
	dbs := []*gorm.DB{e.DB, other, e.Session(&gorm.Session{PrepareStmt: true})}
	people := make([]Person, 30)
	var all sync.WaitGroup
	for i := range people {
		people[i].Name = "p" + strconv.Itoa(i)
		all.Go(func() {
			if err := dbs[i%len(dbs)].Create(&people[i]).Error; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want := map[string]int64{}
	for _, p := range people {
		want[p.Name] = p.ID
	}
	e.sameRows(t, "people", want)
}

// bomb is a value that panics when it is written.
type bomb struct{}

func (bomb) Build(clause.Builder) { panic("bomb") }

func panics(t *testing.T, e *env) {
	tx := e.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&Person{})
	func() {
		defer func() { _ = recover() }()
		tx.Create(map[string]any{"name": bomb{}})
		t.Error("no panic")
	}()
	person := Person{Name: "a"}
	must(t, e.Create(&person).Error)
	must(t, e.First(&Person{}, person.ID).Error)
	e.sameRows(t, "people", map[string]int64{"a": person.ID})
}

func check(t *testing.T, e *env) {
	err := gormplugin.Check(e.DB, &Person{})
	if !errors.Is(err, gormplugin.ErrAutoIncrement) {
		t.Errorf("a column with AUTO_INCREMENT: %v", err)
	}
	must(t, gormplugin.Check(e.DB, &Based{}, &Line{}, &Text{}, &Binary{}))
	for name, c := range map[string]struct {
		model any
		want  error
	}{
		"narrow":    {&Narrow{}, gormplugin.ErrOverflow},
		"unmanaged": {&Legacy{}, gormplugin.ErrUnmanaged},
		"unknown": {&struct {
			ID int64 `keygen:"nobody"`
		}{}, gormplugin.ErrUnknownSource},
		"no key": {&struct {
			ID float64 `keygen:""`
		}{}, gormplugin.ErrFieldType},
	} {
		if err := gormplugin.Check(e.DB, c.model); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if err := gormplugin.Check(e.bare(t), &Person{}); !errors.Is(err, gormplugin.ErrNotLoaded) {
		t.Errorf("without the plugin: %v", err)
	}
}
