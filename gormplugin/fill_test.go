// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/internal/testwait"
	"github.com/shardid/shardid/keygen"
)

// Person has a generated key; it is not sharded.
type Person struct {
	ID   int64 `keygen:""`
	Name string
	Pets []Pet
}

type Pet struct {
	ID       *uint64 `keygen:"pet" gorm:"primaryKey"`
	PersonID int64
	Name     string
}

type Base struct {
	ID int64 `keygen:""`
}

// counting draws from a sequence and records its calls.
type counting struct {
	keygen.Generator[int64]
	mu    sync.Mutex
	fills []int
	ctx   context.Context
	err   error
}

func (c *counting) Fill(ctx context.Context, dst []int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fills, c.ctx = append(c.fills, len(dst)), ctx
	if c.err != nil {
		return c.err
	}
	return keygen.Fill(ctx, c.Generator, dst)
}

// people is one database with a plugin that only fills.
type people struct {
	*gorm.DB
	rec  *recorder
	gen  *counting
	pool *sql.DB
}

func newPeople(t testing.TB) *people {
	t.Helper()
	p := &people{rec: &recorder{}, gen: &counting{Generator: keygen.Counting(100, 10)}}
	p.pool = p.rec.open(t, "db")
	must(t, p.pool, "CREATE TABLE people (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE)")
	must(t, p.pool, "CREATE TABLE pets (id INTEGER PRIMARY KEY AUTOINCREMENT, person_id INTEGER, name TEXT)")
	p.DB = openGORM(t, p.pool)
	if err := p.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{
		Default: p.gen,
		Named:   map[string]keygen.Generator[int64]{"pet": keygen.Counting(7000, 1)},
	}})); err != nil {
		t.Fatal(err)
	}
	p.rec.take()
	return p
}

// stored returns name=id of all rows.
func (p *people) stored(t testing.TB) map[string]int64 {
	t.Helper()
	var rows []Person
	if err := openGORM(t, p.pool).Table("people").Find(&rows).Error; err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, row := range rows {
		found[row.Name] = row.ID
	}
	p.rec.take()
	return found
}

func TestEveryFormOfCreateIsFilledByOneReservation(t *testing.T) {
	one, two := &Person{Name: "a"}, &Person{Name: "b"}
	ids := func(list ...*Person) []int64 {
		var all []int64
		for _, p := range list {
			all = append(all, p.ID)
		}
		return all
	}
	slice := []Person{{Name: "a"}, {Name: "b"}}
	array := [2]Person{{Name: "a"}, {Name: "b"}}
	m := map[string]any{"Name": "a"}
	spelled := map[string]any{"name": "a", "ID": 0}
	for name, form := range map[string]struct {
		create func(db *gorm.DB) *gorm.DB
		ids    func() []int64
	}{
		"*T":        {func(db *gorm.DB) *gorm.DB { return db.Create(one) }, func() []int64 { return ids(one) }},
		"**T":       {func(db *gorm.DB) *gorm.DB { return db.Create(&one) }, func() []int64 { return ids(one) }},
		"[]T":       {func(db *gorm.DB) *gorm.DB { return db.Create(slice) }, func() []int64 { return ids(&slice[0], &slice[1]) }},
		"*[]T":      {func(db *gorm.DB) *gorm.DB { return db.Create(&slice) }, func() []int64 { return ids(&slice[0], &slice[1]) }},
		"[]*T":      {func(db *gorm.DB) *gorm.DB { return db.Create([]*Person{one, two}) }, func() []int64 { return ids(one, two) }},
		"*[]*T":     {func(db *gorm.DB) *gorm.DB { return db.Create(&[]*Person{one, two}) }, func() []int64 { return ids(one, two) }},
		"*[N]T":     {func(db *gorm.DB) *gorm.DB { return db.Create(&array) }, func() []int64 { return ids(&array[0], &array[1]) }},
		"batches":   {func(db *gorm.DB) *gorm.DB { return db.CreateInBatches(&slice, 10) }, func() []int64 { return ids(&slice[0], &slice[1]) }},
		"Save":      {func(db *gorm.DB) *gorm.DB { return db.Save(one) }, func() []int64 { return ids(one) }},
		"Save *[]T": {func(db *gorm.DB) *gorm.DB { return db.Save(&slice) }, func() []int64 { return ids(&slice[0], &slice[1]) }},
		"SkipHooks": {func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{SkipHooks: true}).Create(one) }, func() []int64 { return ids(one) }},
		"Prepared":  {func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{PrepareStmt: true}).Create(one) }, func() []int64 { return ids(one) }},
		"FirstOrCreate": {func(db *gorm.DB) *gorm.DB { return db.FirstOrCreate(one, Person{Name: "a"}) },
			func() []int64 { return ids(one) }},
		"map":  {func(db *gorm.DB) *gorm.DB { return db.Model(&Person{}).Create(m) }, func() []int64 { return []int64{m["id"].(int64)} }},
		"*map": {func(db *gorm.DB) *gorm.DB { return db.Model(&Person{}).Create(&m) }, func() []int64 { return []int64{m["id"].(int64)} }},
		"map with ID": {func(db *gorm.DB) *gorm.DB { return db.Model(&Person{}).Create(spelled) },
			func() []int64 { return []int64{spelled["ID"].(int64)} }},
	} {
		t.Run(name, func(t *testing.T) {
			one.ID, two.ID, slice[0].ID, slice[1].ID, array = 0, 0, 0, 0, [2]Person{{Name: "a"}, {Name: "b"}}
			delete(m, "id")
			spelled["ID"] = 0
			p := newPeople(t)
			if err := form.create(p.DB).Error; err != nil {
				t.Fatal(err)
			}
			got := form.ids()
			want := []int64{100, 110}[:len(got)]
			if !slices.Equal(got, want) || !slices.Equal(p.gen.fills, []int{len(got)}) {
				t.Errorf("ids %v, want %v; reservations %v", got, want, p.gen.fills)
			}
			stored := p.stored(t)
			for i, id := range got {
				if stored[string(rune('a'+i))] != id {
					t.Errorf("the value has id %d, the table has %v", id, stored)
				}
			}
			if len(stored) != len(got) {
				t.Errorf("stored %v", stored)
			}
		})
	}
}

func TestGeneratedIdsAreCreatedInBatches(t *testing.T) {
	p := newPeople(t)
	list := make([]Person, 25)
	for i := range list {
		list[i].Name = fmt.Sprint("p", i)
	}
	if err := p.CreateInBatches(list, 10).Error; err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(p.gen.fills, []int{10, 10, 5}) {
		t.Errorf("reservations %v", p.gen.fills)
	}
	stored := p.stored(t)
	for i, person := range list {
		if stored[person.Name] != person.ID || person.ID != int64(100+10*i) {
			t.Fatalf("%s has id %d, stored %d", person.Name, person.ID, stored[person.Name])
		}
	}
}

func TestAssociationsAreFilledByTheirOwnTag(t *testing.T) {
	p := newPeople(t)
	person := Person{Name: "a", Pets: []Pet{{Name: "x"}, {Name: "y"}}}
	if err := p.Create(&person).Error; err != nil {
		t.Fatal(err)
	}
	if person.ID != 100 || *person.Pets[0].ID != 7000 || *person.Pets[1].ID != 7001 || person.Pets[1].PersonID != 100 {
		t.Errorf("%+v", person)
	}
	var pets []Pet
	if err := p.Order("id").Find(&pets).Error; err != nil || len(pets) != 2 || *pets[1].ID != 7001 || pets[1].PersonID != 100 {
		t.Errorf("stored %+v, %v", pets, err)
	}
}

func TestPresentValuesAreKept(t *testing.T) {
	p := newPeople(t)
	list := []Person{{Name: "a"}, {ID: 5, Name: "b"}, {Name: "c"}}
	if err := p.Create(&list).Error; err != nil {
		t.Fatal(err)
	}
	if list[0].ID != 100 || list[1].ID != 5 || list[2].ID != 110 || !slices.Equal(p.gen.fills, []int{2}) {
		t.Errorf("%+v, reservations %v", list, p.gen.fills)
	}
	given := map[string]any{"id": 6, "name": "d"}
	maps := []map[string]any{{"ID": 7, "name": "e"}}
	if err := p.Model(&Person{}).Create(given).Error; err != nil || given["id"] != 6 && given["id"] != int64(6) {
		t.Errorf("%v, %v", given, err)
	}
	p.rec.take()
	if err := p.Session(&gorm.Session{DryRun: true}).Model(&Person{}).Create(maps).Error; err != nil {
		t.Error(err)
	}
	if len(p.gen.fills) != 1 {
		t.Errorf("drew ids for rows that have one: %v", p.gen.fills)
	}
}

type (
	PlainID struct {
		ID   int64
		Name string
	}
	NeverID struct {
		ID   int64 `keygen:"-"`
		Name string
	}
	ReadOnlyID struct {
		ID   int64 `keygen:"" gorm:"->"`
		Name string
	}
)

func (PlainID) TableName() string    { return "people" }
func (NeverID) TableName() string    { return "people" }
func (ReadOnlyID) TableName() string { return "people" }

func TestUnmanagedKeysAreLeftToTheDatabase(t *testing.T) {
	for _, dest := range []any{&PlainID{Name: "a"}, &NeverID{Name: "a"}, &ReadOnlyID{Name: "a"}} {
		p := newPeople(t)
		if err := p.Create(dest).Error; err != nil {
			t.Fatal(err)
		}
		if got := p.stored(t)["a"]; got != 1 || len(p.gen.fills) != 0 {
			t.Errorf("%T: id %d, reservations %v", dest, got, p.gen.fills)
		}
	}
	p := newPeople(t)
	if err := p.Omit("id").Create(&Person{Name: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	if got := p.stored(t)["a"]; got != 1 || len(p.gen.fills) != 0 {
		t.Errorf("Omit: id %d, reservations %v", got, p.gen.fills)
	}
}

func TestASelectWithoutTheKeyStillSendsIt(t *testing.T) {
	p := newPeople(t)
	person := Person{Name: "a"}
	tx := p.Select("name").Create(&person)
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	if got := p.stored(t)["a"]; got != 100 || person.ID != 100 {
		t.Errorf("stored %d, in the struct %d", got, person.ID)
	}
	if !slices.Equal(tx.Statement.Selects, []string{"name"}) {
		t.Errorf("Selects became %v", tx.Statement.Selects)
	}
}

type (
	Narrow struct {
		ID   int8 `keygen:"large"`
		Name string
	}
	Fraction struct {
		ID   float64 `keygen:""`
		Name string
	}
	Unknown struct {
		ID   int64 `keygen:"nobody"`
		Name string
	}
	Odd struct {
		ID   int64 `keygen:",hook"`
		Name string
	}
	Other struct{ Name string }
)

func TestRowsThatCannotBeFilledAreRefusedBeforeAnySQL(t *testing.T) {
	var none *Person
	for name, c := range map[string]struct {
		create func(db *gorm.DB) *gorm.DB
		want   error
		text   string
	}{
		"T":                 {func(db *gorm.DB) *gorm.DB { return db.Create(Person{Name: "a"}) }, gormplugin.ErrNotAddressable, "Person by value"},
		"[N]T":              {func(db *gorm.DB) *gorm.DB { return db.Create([1]Person{}) }, gormplugin.ErrNotAddressable, "pass a pointer"},
		"nil element":       {func(db *gorm.DB) *gorm.DB { return db.Create([]*Person{{}, nil}) }, gorm.ErrInvalidData, "row 1 is nil"},
		"nil pointer":       {func(db *gorm.DB) *gorm.DB { return db.Create(none) }, gorm.ErrInvalidValue, ""},
		"other type":        {func(db *gorm.DB) *gorm.DB { return db.Model(&Person{}).Create(&Other{}) }, gormplugin.ErrModelMismatch, "Other for model Person"},
		"other slice":       {func(db *gorm.DB) *gorm.DB { return db.Model(&Person{}).Create(&[]Other{{}}) }, gormplugin.ErrModelMismatch, ""},
		"[]any":             {func(db *gorm.DB) *gorm.DB { return db.Model(&Person{}).Create([]any{&Person{}}) }, gormplugin.ErrModelMismatch, ""},
		"narrow field":      {func(db *gorm.DB) *gorm.DB { return db.Create(&Narrow{}) }, gormplugin.ErrOverflow, "Narrow.ID: 1000 into int8"},
		"float field":       {func(db *gorm.DB) *gorm.DB { return db.Create(&Fraction{}) }, gormplugin.ErrFieldType, "Fraction.ID"},
		"unknown generator": {func(db *gorm.DB) *gorm.DB { return db.Create(&Unknown{}) }, keygen.ErrUnknownGenerator, `Unknown.ID: keygen: unknown generator "nobody"; the set has [large]`},
		"unknown option":    {func(db *gorm.DB) *gorm.DB { return db.Create(&Odd{}) }, nil, "Odd.ID: keygen tag"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{}
			db := openGORM(t, rec.open(t, "db"))
			if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{
				Default: keygen.Counting(1, 1), Named: map[string]keygen.Generator[int64]{"large": keygen.Counting(1000, 1)},
			}})); err != nil {
				t.Fatal(err)
			}
			rec.take()
			err := c.create(db).Error
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
			for _, event := range rec.take() {
				if event != "db: BEGIN" && event != "db: ROLLBACK" {
					t.Errorf("sent %s", event)
				}
			}
		})
	}
}

func TestAGeneratorsErrorReachesTheCallerAndNothingIsSent(t *testing.T) {
	p := newPeople(t)
	p.gen.err = keygen.ErrStarved
	person := Person{Name: "a"}
	err := p.Create(&person).Error
	var field *gormplugin.FieldError
	if !errors.Is(err, keygen.ErrStarved) || !errors.As(err, &field) || field.Model != "Person" || field.Field != "ID" {
		t.Errorf("got %v", err)
	}
	sameEvents(t, p.rec.take())
	if person.ID != 0 {
		t.Errorf("id %d", person.ID)
	}
}

func TestTheStatementsContextReachesTheGenerator(t *testing.T) {
	type key struct{}
	p := newPeople(t)
	if err := p.WithContext(context.WithValue(t.Context(), key{}, "mine")).Create(&Person{Name: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	if p.gen.ctx.Value(key{}) != "mine" {
		t.Error("the generator was given another context")
	}
}

// fromPool is a generator that needs the pool of the rows.
type fromPool struct{ db *sql.DB }

func (g fromPool) Next(ctx context.Context) (int64, error) {
	var n int64
	err := g.db.QueryRowContext(ctx, "SELECT count(*) + 1 FROM people").Scan(&n)
	return n, err
}

func TestIdsAreReservedBeforeTheDefaultTransactionBegins(t *testing.T) {
	rec := &recorder{}
	pool := rec.open(t, "db")
	must(t, pool, "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
	pool.SetMaxOpenConns(1)
	db := openGORM(t, pool)
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: fromPool{pool}}})); err != nil {
		t.Fatal(err)
	}
	rec.take()
	ctx := testwait.Context(t) // it would wait for the second connection until then
	if err := db.WithContext(ctx).Create(&Person{Name: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	sameEvents(t, rec.take(),
		"db: SELECT count(*) + 1 FROM people",
		"db: BEGIN", "db: INSERT INTO `people` (`id`,`name`) VALUES (?,?)", "db: COMMIT")
}

// Hooked sets its own id, empties it, or fails, as its name says.
type Hooked struct {
	ID   int64 `keygen:""`
	Name string
	saw  int64
}

func (Hooked) TableName() string { return "people" }

func (h *Hooked) BeforeCreate(*gorm.DB) error {
	h.saw = h.ID
	switch h.Name {
	case "own":
		h.ID = 42
	case "empty":
		h.ID = 0
	case "fail":
		return errors.New("hook failed")
	}
	return nil
}

func TestAModelsBeforeCreateDecidesTheKey(t *testing.T) {
	p := newPeople(t)
	list := []Hooked{{Name: "own"}, {Name: "plain"}, {ID: 7, Name: "empty"}}
	if err := p.Create(&list).Error; err != nil {
		t.Fatal(err)
	}
	if list[0].ID != 42 || list[0].saw != 0 || list[1].ID != 100 || list[2].ID != 110 {
		t.Errorf("%+v", list)
	}
	if stored := p.stored(t); stored["own"] != 42 || stored["plain"] != 100 || stored["empty"] != 110 {
		t.Errorf("stored %v", stored)
	}
	failing := Hooked{Name: "fail"}
	if err := p.Create(&failing).Error; err == nil || failing.ID != 0 {
		t.Errorf("%v, id %d", err, failing.ID)
	}
}

func TestDryRunShowsTheIdAndRemovesIt(t *testing.T) {
	p := newPeople(t)
	person := Person{Name: "a"}
	tx := p.Session(&gorm.Session{DryRun: true}).Create(&person)
	if tx.Error != nil || !slices.Contains(tx.Statement.Vars, any(int64(100))) || person.ID != 0 {
		t.Errorf("%v, vars %v, id %d", tx.Error, tx.Statement.Vars, person.ID)
	}
	m := map[string]any{"name": "a"}
	if err := p.Session(&gorm.Session{DryRun: true}).Model(&Person{}).Create(m).Error; err != nil || len(m) != 1 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestAnIdIsRemovedOnlyWithProofThatNoRowExists(t *testing.T) {
	p := newPeople(t)
	if err := p.Create(&Person{Name: "taken"}).Error; err != nil {
		t.Fatal(err)
	}
	person := Person{Name: "taken"}
	if err := p.Create(&person).Error; err == nil || person.ID != 0 {
		t.Errorf("violated constraint: %v, id %d", err, person.ID)
	}
	if err := p.First(&person, "name = ?", "taken").Error; err != nil || person.ID != 100 {
		t.Errorf("create, on duplicate find: %v, id %d", err, person.ID)
	}
	list := []Person{{Name: "new"}, {Name: "taken"}}
	if err := p.Create(&list).Error; err == nil || list[0].ID != 0 || list[1].ID != 0 {
		t.Errorf("several rows, rolled back: %v, %v", err, list)
	}
	if err := p.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&list).Error; err == nil || list[0].ID == 0 {
		t.Errorf("several rows: %v, ids %v", err, list)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.gen.Generator = keygen.Func[int64](func(context.Context) (int64, error) { cancel(); return 500, nil })
	ambiguous := Person{Name: "late"}
	err := p.Session(&gorm.Session{SkipDefaultTransaction: true, Context: ctx}).Create(&ambiguous).Error
	if !errors.Is(err, context.Canceled) || ambiguous.ID != 500 {
		t.Errorf("ended context: %v, id %d", err, ambiguous.ID)
	}
}

type Derived struct {
	*Base
	Name string
}

func (Derived) TableName() string { return "people" }

type TwoKeys struct {
	ID     int64         `keygen:""`
	Number sql.NullInt64 `keygen:"pet" gorm:"column:name"`
}

func (TwoKeys) TableName() string { return "people" }

// TestRowsOfAnotherTransactionKeepTheirIdsWhenTheCreateIsRolledBack stores rows of a log in a transaction of
// their own, under the context that a hook sees.
func TestRowsOfAnotherTransactionKeepTheirIdsWhenTheCreateIsRolledBack(t *testing.T) {
	p, log := newPeople(t), newPeople(t)
	entries := []Person{{Name: "one"}, {Name: "two"}}
	errLogged := errors.New("the create fails after its log is written")
	err := p.Callback().Create().Before("gorm:after_create").Register("test:log", func(db *gorm.DB) {
		if db.Statement.Table == "people" {
			_ = db.AddError(errors.Join(log.WithContext(db.Statement.Context).CreateInBatches(&entries, 1).Error, errLogged))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ada := Person{Name: "Ada", Pets: []Pet{{Name: "cat"}}}
	if err := p.Create(&ada).Error; !errors.Is(err, errLogged) || ada.ID != 0 || ada.Pets[0].ID != nil {
		t.Errorf("%v, %+v", err, ada)
	}
	var stored []Person
	if err := log.Order("id").Find(&stored).Error; err != nil || len(stored) != 2 {
		t.Fatalf("%v, %+v", err, stored)
	}
	for i, entry := range entries {
		if entry.ID != stored[i].ID {
			t.Errorf("%q has id %d, but the struct has %d", stored[i].Name, stored[i].ID, entry.ID)
		}
	}
}

func TestEmbeddedAndSecondFieldsAreFilled(t *testing.T) {
	p := newPeople(t)
	d := Derived{Name: "a"}
	if err := p.Create(&d).Error; err != nil || d.Base == nil || d.ID != 100 {
		t.Errorf("%+v, %v", d, err)
	}
	two := TwoKeys{}
	if err := p.Create(&two).Error; err != nil || two.ID != 110 || two.Number.Int64 != 7000 {
		t.Errorf("%+v, %v", two, err)
	}
	if stored := p.stored(t); stored["a"] != 100 || stored["7000"] != 110 {
		t.Errorf("stored %v", stored)
	}
}

func TestConcurrentCreatesGetDifferentIds(t *testing.T) {
	p := newPeople(t)
	p.pool.SetMaxOpenConns(4)
	var wg sync.WaitGroup
	seen := make([]int64, 40)
	for i := range seen {
		wg.Go(func() {
			person := Person{Name: fmt.Sprint("p", i)}
			if err := p.Create(&person).Error; err != nil {
				t.Error(err)
			}
			seen[i] = person.ID
		})
	}
	wg.Wait()
	stored := p.stored(t)
	for i, id := range seen {
		if id == 0 || stored[fmt.Sprint("p", i)] != id {
			t.Errorf("p%d: id %d, stored %d", i, id, stored[fmt.Sprint("p", i)])
		}
	}
}

func TestNothingIsKeptWithTheStatement(t *testing.T) {
	p := newPeople(t)
	tx := p.Create(&Person{Name: "a"})
	tx.Statement.Settings.Range(func(key, _ any) bool {
		if strings.Contains(fmt.Sprintf("%T", key), "gormplugin") {
			t.Errorf("kept %T", key)
		}
		return true
	})
}

func TestAnUpsertKeepsTheRowsIdentity(t *testing.T) {
	p := newPeople(t)
	if err := p.Create(&Person{Name: "a"}).Error; err != nil {
		t.Fatal(err)
	}
	again := Person{Name: "a"}
	upsert := clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}
	if err := p.Clauses(upsert).Create(&again).Error; err != nil {
		t.Fatal(err)
	}
	if again.ID != 100 || p.stored(t)["a"] != 100 {
		t.Errorf("the struct has id %d, the table %v", again.ID, p.stored(t))
	}
}
