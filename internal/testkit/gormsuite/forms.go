// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/shardid/shardid/gormplugin"
)

var formTests = []test{
	{"PointersSlicesAndArraysAreFilledByOneReservation", pointersSlicesAndArrays},
	{"PresetsAreKept", presets},
	{"ValuesThatCannotBeToldTheirKeyAreRefusedBeforeAnySQL", byValue},
	{"ValuesThatHaveTheirKeysAreCreated", byValueWithKeys},
	{"NilElementsAndOtherTypesAreErrors", otherTypes},
	{"MapsReceiveTheirKeysUnderAnySpelling", oneMap},
	{"SlicesOfMapsKeepTheirMapsAndReceiveTheRightKeys", manyMaps},
	{"MapsKeepColumnsThatTheDatabaseWouldFill", mapsWithDefaults},
	{"ATableOfMapsIsFilledWhenItIsRegistered", tableOfMaps},
	{"ATableOfMapsIsLeftAloneWhenItIsNot", plainTableOfMaps},
	{"ARegisteredModelNeedsNoTag", registered},
	{"AutoFillsWhatTheDatabaseWouldNumber", auto},
	{"BatchesDrawOncePerStatement", batches},
	{"EmbeddedKeysAreFilled", embedded},
	{"OnlyTheTaggedPartOfACompositeKeyIsFilled", composite},
	{"ABusinessNumberIsFilledBesideTheDatabasesKey", businessNumber},
	{"SaveFillsWhatIsZero", save},
	{"FirstOrCreateFillsOnlyWhenItCreates", firstOrCreate},
	{"GenericsAreFilledLikeStructsAndSlices", generics},
	{"WithAndOffDecideForOneCall", perCall},
}

// people returns name=id of all rows.
func (e *env) people(t *testing.T) map[string]int64 {
	t.Helper()
	return e.rows(t, "people")
}

// rows returns name=id of all rows of a table.
func (e *env) rows(t *testing.T, table string) map[string]int64 {
	t.Helper()
	var found []struct {
		ID   int64
		Name string
	}
	must(t, e.bare(t).Table(table).Find(&found).Error)
	rows := map[string]int64{}
	for _, row := range found {
		rows[row.Name] = row.ID
	}
	return rows
}

func (e *env) sameRows(t *testing.T, table string, want map[string]int64) {
	t.Helper()
	if got := e.rows(t, table); !maps.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
}

func pointersSlicesAndArrays(t *testing.T, e *env) {
	for name, form := range map[string]func() (any, func() []*Person){
		"*T":    func() (any, func() []*Person) { p := &Person{Name: "a"}; return p, list(p) },
		"**T":   func() (any, func() []*Person) { p := &Person{Name: "a"}; return &p, list(p) },
		"[]T":   func() (any, func() []*Person) { s := []Person{{Name: "a"}, {Name: "b"}}; return s, list(&s[0], &s[1]) },
		"*[]T":  func() (any, func() []*Person) { s := []Person{{Name: "a"}, {Name: "b"}}; return &s, list(&s[0], &s[1]) },
		"[]*T":  func() (any, func() []*Person) { s := []*Person{{Name: "a"}, {Name: "b"}}; return s, list(s...) },
		"*[]*T": func() (any, func() []*Person) { s := []*Person{{Name: "a"}, {Name: "b"}}; return &s, list(s...) },
		"*[N]T": func() (any, func() []*Person) {
			s := [2]Person{{Name: "a"}, {Name: "b"}}
			return &s, list(&s[0], &s[1])
		},
	} {
		empty(t, e.DB)
		e.gen.take()
		dest, people := form()
		tx := e.Create(dest)
		must(t, tx.Error)
		want := map[string]int64{}
		for _, p := range people() {
			want[p.Name] = p.ID
			if p.ID < first {
				t.Errorf("%s: id %d is not the source's", name, p.ID)
			}
		}
		e.sameRows(t, "people", want)
		sameList(t, name+": reservations", e.gen.take(), len(want))
		same(t, name+": rows", tx.RowsAffected, int64(len(want)))
	}
}

func list(p ...*Person) func() []*Person { return func() []*Person { return p } }

func presets(t *testing.T, e *env) {
	people := []Person{{Name: "a"}, {ID: 5, Name: "b"}, {Name: "c"}}
	must(t, e.Create(&people).Error)
	sameList(t, "ids", []int64{people[0].ID, people[1].ID, people[2].ID}, id(0), 5, id(1))
	e.sameRows(t, "people", map[string]int64{"a": id(0), "b": 5, "c": id(1)})
	sameList(t, "reservations", e.gen.take(), 2)
	must(t, e.Create(&Person{ID: 6, Name: "d"}).Error)
	sameList(t, "reservations", e.gen.take())
}

func byValue(t *testing.T, e *env) {
	for name, dest := range map[string]any{"T": Person{Name: "a"}, "[N]T": [1]Person{{Name: "a"}}} {
		err := e.Create(dest).Error
		if !errors.Is(err, gormplugin.ErrNotAddressable) || !errors.Is(err, gorm.ErrInvalidValue) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sameList(t, "statements", e.log.take())
	sameList(t, "reservations", e.gen.take())
}

func byValueWithKeys(t *testing.T, e *env) {
	must(t, errors.Join(e.Create(Person{ID: 3, Name: "a"}).Error, e.Create([2]Person{{ID: 4, Name: "b"}, {ID: 5, Name: "c"}}).Error))
	e.sameRows(t, "people", map[string]int64{"a": 3, "b": 4, "c": 5})
	sameList(t, "reservations", e.gen.take())
	if err := e.Create([2]Person{{ID: 6, Name: "d"}, {Name: "e"}}).Error; !errors.Is(err, gormplugin.ErrNotAddressable) {
		t.Errorf("a row without a key: %v", err)
	}
}

func otherTypes(t *testing.T, e *env) {
	var none *Person
	var any1 any = &Person{}
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want error
	}{
		"nil element": {e.Create([]*Person{{}, nil}), gorm.ErrInvalidData},
		"nil pointer": {e.Create(none), gorm.ErrInvalidValue},
		"[]any":       {e.Model(&Person{}).Create([]any{&Person{}}), gormplugin.ErrModelMismatch},
		"*any":        {e.Model(&Person{}).Create(&any1), gormplugin.ErrModelMismatch},
		"other type":  {e.Model(&Person{}).Create(&Legacy{Name: "a"}), gormplugin.ErrModelMismatch},
		"other slice": {e.Model(&Person{}).Create(&[]Legacy{{Name: "a"}}), gormplugin.ErrModelMismatch},
		"nil map":     {e.Model(&Person{}).Create([]map[string]any{nil}), gorm.ErrInvalidData},
	} {
		if !errors.Is(c.tx.Error, c.want) {
			t.Errorf("%s: %v, want %v", name, c.tx.Error, c.want)
		}
	}
	sameList(t, "statements", e.log.take())
	if err := e.Create(&[]Person{}).Error; !errors.Is(err, gorm.ErrEmptySlice) {
		t.Errorf("empty slice: %v", err)
	}
	e.sameRows(t, "people", map[string]int64{})
}

func oneMap(t *testing.T, e *env) {
	plain := map[string]any{"name": "a"}
	spelled := map[string]any{"Name": "b", "ID": 0}
	null := map[string]any{"name": "c", "id": nil}
	given := map[string]any{"name": "d", "ID": int64(4)}
	var nothing map[string]any
	model := e.Model(&Person{}).Session(&gorm.Session{})
	must(t, errors.Join(model.Create(plain).Error, model.Create(&spelled).Error, model.Create(null).Error, model.Create(given).Error))
	same(t, "plain", plain["id"], any(id(0)))
	same(t, "spelled", spelled["ID"], any(id(1)))
	same(t, "null", null["id"], any(id(2)))
	same(t, "given", given["ID"], any(int64(4)))
	same(t, "entries", len(plain)+len(spelled)+len(null)+len(given), 8)
	e.sameRows(t, "people", map[string]int64{"a": id(0), "b": id(1), "c": id(2), "d": 4})
	must(t, model.Create(&nothing).Error)
	same(t, "of a nil map", nothing["id"], any(id(3)))
}

func manyMaps(t *testing.T, e *env) {
	one := []map[string]any{{"name": "a"}, {"name": "b", "id": int64(7)}, {"name": "c", "ID": 0}}
	two := []map[string]any{{"name": "d"}, {"name": "e"}}
	model := e.Model(&Person{}).Session(&gorm.Session{})
	first, second := model.Create(one), model.Create(&two)
	must(t, errors.Join(first.Error, second.Error))
	same(t, "rows", first.RowsAffected*10+second.RowsAffected, 32)
	same(t, "maps", len(one)*10+len(two), 32)
	sameList[any](t, "ids", []any{one[0]["id"], one[1]["id"], one[2]["ID"], two[0]["id"], two[1]["id"]}, id(0), int64(7), id(1), id(2), id(3))
	sameList(t, "entries", []int{len(one[0]), len(one[1]), len(one[2]), len(two[0]), len(two[1])}, 2, 2, 2, 2, 2)
	e.sameRows(t, "people", map[string]int64{"a": id(0), "b": 7, "c": id(1), "d": id(2), "e": id(3)})
	sameList(t, "reservations", e.gen.take(), 2, 2)
}

func mapsWithDefaults(t *testing.T, e *env) {
	many := []map[string]any{{"name": "a", "rate": 1}, {"name": "b", "rate": 2}}
	must(t, e.Model(&Rated{}).Create(&many).Error)
	var rated []Rated
	must(t, e.bare(t).Order("id").Find(&rated).Error)
	sameList(t, "rows", rated, Rated{id(0), "a", 1}, Rated{id(1), "b", 2})
	same(t, "maps", len(many), 2)
}

func tableOfMaps(t *testing.T, e *env) {
	db := e.open(t, e.pool, gorm.Config{}, gormplugin.Config{Models: []gormplugin.Model{{Struct: &Legacy{}, Tags: map[string]string{"ID": ""}}, {Struct: &Person{}}}})
	one, two := map[string]any{"name": "a"}, []map[string]any{{"name": "b"}, {"Name": "c"}}
	person := map[string]any{"name": "p"}
	must(t, errors.Join(db.Table("legacies").Create(one).Error, db.Table("legacies").Create(&two).Error, db.Table("people").Create(person).Error))
	e.sameRows(t, "legacies", map[string]int64{"a": id(0), "b": id(1), "c": id(2)})
	e.sameRows(t, "people", map[string]int64{"p": id(3)})
	sameList[any](t, "ids", []any{one["id"], two[0]["id"], two[1]["id"], person["id"]}, id(0), id(1), id(2), id(3))
	sameList(t, "entries", []int{len(one), len(two[0]), len(two[1])}, 2, 2, 2)
}

func plainTableOfMaps(t *testing.T, e *env) {
	must(t, e.Table("legacies").Create(map[string]any{"name": "a"}).Error)
	sameList(t, "reservations", e.gen.take())
	if got := e.rows(t, "legacies")["a"]; !e.gen.isDatabases(got) {
		t.Errorf("id %d is not the database's", got)
	}
}

func registered(t *testing.T, e *env) {
	db := e.open(t, e.pool, gorm.Config{}, gormplugin.Config{Models: []gormplugin.Model{
		{Struct: Legacy{}, Tags: map[string]string{"ID": "pet"}},
		{Struct: &Person{}, Tags: map[string]string{"ID": "-"}},
	}})
	legacy, person := Legacy{Name: "a"}, Person{Name: "p"}
	must(t, errors.Join(db.Create(&legacy).Error, db.Create(&person).Error))
	e.sameRows(t, "legacies", map[string]int64{"a": 500})
	same(t, "id", legacy.ID, 500)
	if !e.gen.isDatabases(person.ID) {
		t.Errorf("id %d is not the database's, as registered", person.ID)
	}
}

func auto(t *testing.T, e *env) {
	db := e.open(t, e.pool, gorm.Config{}, gormplugin.Config{Auto: true})
	legacy, invoice, never := Legacy{Name: "a"}, Invoice{Name: "i"}, Never{Name: "n"}
	must(t, errors.Join(db.Create(&legacy).Error, db.Create(&invoice).Error, db.Create(&never).Error, db.Create(&Line{OrderID: 1}).Error))
	sameList(t, "ids", []int64{legacy.ID, invoice.ID, invoice.Number}, id(0), id(1), id(2))
	if !e.gen.isDatabases(never.ID) {
		t.Errorf("id %d of a field tagged %q", never.ID, "-")
	}
}

func batches(t *testing.T, e *env) {
	people := make([]Person, 5)
	for i := range people {
		people[i].Name = fmt.Sprint("p", i)
	}
	tx := e.CreateInBatches(&people, 2)
	must(t, tx.Error)
	same(t, "rows", tx.RowsAffected, 5)
	sameList(t, "reservations", e.gen.take(), 2, 2, 1)
	more := []*Person{{Name: "q0"}, {Name: "q1"}, {Name: "q2"}}
	must(t, e.Session(&gorm.Session{CreateBatchSize: 2}).Create(more).Error)
	sameList(t, "reservations", e.gen.take(), 2, 1)
	want := map[string]int64{}
	for i := range people {
		want[people[i].Name] = id(int64(i))
	}
	for i := range more {
		want[more[i].Name] = id(int64(5 + i))
	}
	e.sameRows(t, "people", want)
	same(t, "id", more[2].ID, id(7))
}

func embedded(t *testing.T, e *env) {
	derived, prefixed, based := Derived{Name: "a"}, []Prefixed{{Name: "b"}, {Name: "c"}}, Based{Name: "d"}
	must(t, errors.Join(e.Create(&derived).Error, e.Create(&prefixed).Error, e.Create(&based).Error))
	if derived.Key == nil || derived.ID != id(0) {
		t.Errorf("nil embedded pointer: %+v", derived)
	}
	sameList(t, "ids", []int64{prefixed[0].Key.ID, prefixed[1].Key.ID, int64(based.ID)}, id(1), id(2), id(3))
	e.sameRows(t, "deriveds", map[string]int64{"a": id(0)})
	e.sameRows(t, "baseds", map[string]int64{"d": id(3)})
	var stored []Prefixed
	must(t, e.bare(t).Order("my_id").Find(&stored).Error)
	if !slices.Equal(stored, prefixed) {
		t.Errorf("stored %v", stored)
	}
}

func composite(t *testing.T, e *env) {
	lines := []Line{{OrderID: 1, Name: "a"}, {OrderID: 1, No: 2, Name: "b"}, {Name: "c"}}
	must(t, e.Create(&lines).Error)
	var stored []Line
	must(t, e.bare(t).Order("name").Find(&stored).Error)
	sameList(t, "rows", stored, Line{1, id(0), "a"}, Line{1, 2, "b"}, Line{0, id(1), "c"})
	sameList(t, "structs", lines, stored...)
}

func businessNumber(t *testing.T, e *env) {
	invoices := []Invoice{{Name: "a"}, {Name: "b", Number: 3}}
	must(t, e.Create(&invoices).Error)
	sameList(t, "numbers", []int64{invoices[0].Number, invoices[1].Number}, id(0), 3)
	var stored []Invoice
	must(t, e.bare(t).Order("name").Find(&stored).Error)
	sameList(t, "rows", stored, invoices...)
	if !e.gen.isDatabases(invoices[0].ID) {
		t.Errorf("the key %d is not the database's", invoices[0].ID)
	}
}

func save(t *testing.T, e *env) {
	zero, missing := Person{Name: "a"}, Person{ID: 9, Name: "b"}
	must(t, errors.Join(e.Save(&zero).Error, e.Save(&missing).Error))
	same(t, "zero", zero.ID, id(0))
	zero.Age = 1
	people := []Person{zero, {Name: "c"}, {ID: 11, Name: "d"}}
	must(t, e.Save(&people).Error)
	sameList(t, "slice", []int64{people[0].ID, people[1].ID, people[2].ID}, id(0), id(1), 11)
	e.sameRows(t, "people", map[string]int64{"a": id(0), "b": 9, "c": id(1), "d": 11})
	sameList(t, "reservations", e.gen.take(), 1, 1)
	var a Person
	must(t, e.bare(t).First(&a, id(0)).Error)
	same(t, "updated age", a.Age, 1)
}

func firstOrCreate(t *testing.T, e *env) {
	var created, found Person
	must(t, e.FirstOrCreate(&created, Person{Name: "a"}).Error)
	must(t, e.Where(Person{Name: "a"}).Attrs(Person{Age: 3}).FirstOrCreate(&found).Error)
	same(t, "created", created.ID, id(0))
	same(t, "found", found, Person{id(0), "a", 0})
	sameList(t, "reservations", e.gen.take(), 1)
}

func generics(t *testing.T, e *env) {
	one, many := Person{Name: "a"}, []Person{{Name: "b"}, {Name: "c"}, {Name: "d"}}
	must(t, gorm.G[Person](e.DB).Create(t.Context(), &one))
	must(t, gorm.G[Person](e.DB).CreateInBatches(t.Context(), &many, 2))
	e.sameRows(t, "people", map[string]int64{"a": one.ID, "b": many[0].ID, "c": many[1].ID, "d": many[2].ID})
	sameList(t, "ids", []int64{one.ID, many[0].ID, many[1].ID, many[2].ID}, id(0), id(1), id(2), id(3))
	sameList(t, "reservations", e.gen.take(), 1, 2, 1)
}

func perCall(t *testing.T, e *env) {
	pets := e.set().Named["pet"]
	with := e.WithContext(gormplugin.With(t.Context(), pets))
	customer := Customer{Name: "a", Labels: []Label{{Name: "l"}}}
	legacy, preset := Legacy{Name: "b"}, Person{ID: 3, Name: "c"}
	must(t, errors.Join(with.Create(&customer).Error, with.Create(&legacy).Error, with.Create(&preset).Error))
	sameList(t, "With", []int64{customer.ID, legacy.ID, preset.ID, customer.Labels[0].ID}, 500, 501, 3, id(0))
	e.sameRows(t, "legacies", map[string]int64{"b": 501})

	off := e.WithContext(gormplugin.Off(t.Context()))
	person, value := Person{Name: "d"}, Customer{Name: "e", Labels: []Label{{Name: "m"}}}
	must(t, errors.Join(off.Create(&person).Error, off.Create(&value).Error))
	for _, id := range []int64{person.ID, value.ID, value.Labels[0].ID} {
		if !e.gen.isDatabases(id) {
			t.Errorf("Off: id %d is not the database's", id)
		}
	}
	err := e.WithContext(gormplugin.With(t.Context(), e.set().Text["word"])).Create(&Person{Name: "f"}).Error
	if !errors.Is(err, gormplugin.ErrFieldType) {
		t.Errorf("With words for an integer key: %v", err)
	}
}
