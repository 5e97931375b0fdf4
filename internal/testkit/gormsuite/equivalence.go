// SPDX-License-Identifier: Apache-2.0

package gormsuite

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
	gormtests "gorm.io/gorm/utils/tests" // the models of gorm's own tests

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/keygen"
)

var equivalenceTests = []test{
	{"NothingButTheNumbersOfKeysIsDifferent", equivalence},
}

// equivalence runs programs with and without the plugin. Their results and the rows that they leave
// must be the same except for the numbers of the keys.
//
// To compare two runs, each key is replaced by the name of its row.
func equivalence(t *testing.T, e *env) {
	naming := schema.NamingStrategy{TablePrefix: "like_"}
	config := gorm.Config{NamingStrategy: naming, NowFunc: func() time.Time { return time.Unix(1_700_000_000, 0).UTC() }, PrepareStmt: e.PrepareStmt}
	plain, err := gorm.Open(e.Dialector(e.pool), &gorm.Config{Logger: e.log, NamingStrategy: naming, NowFunc: config.NowFunc, PrepareStmt: e.PrepareStmt})
	must(t, err)
	must(t, plain.AutoMigrate(likeModels()...))
	managed := map[string]gormplugin.Config{
		"Auto":       {Auto: true, Generators: likeKeys()},
		"registered": {Models: likeRegistrations(), Generators: likeKeys()},
		"unmanaged":  {Generators: likeKeys()},
	}
	with := map[string]*gorm.DB{}
	for name, c := range managed {
		with[name] = e.open(t, e.pool, config, c)
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			want := perform(t, plain, p)
			for name, db := range with {
				t.Run(name, func(t *testing.T) {
					if got := perform(t, db, p); got != want {
						t.Errorf("with the plugin:\n%s\nwithout:\n%s", got, want)
					}
				})
			}
		})
	}
}

// likeModels returns the models in an order whose reverse allows their tables to be emptied.
func likeModels() []any {
	return []any{&gormtests.Company{}, &gormtests.Language{}, &gormtests.User{}, &gormtests.Account{}, &gormtests.Pet{}, &gormtests.Toy{}, &gormtests.Tools{}}
}

func likeKeys() keygen.Set { return keygen.Set{Default: keygen.Counting(first, step)} }

func likeRegistrations() (all []gormplugin.Model) {
	for _, m := range likeModels() {
		if _, text := m.(*gormtests.Language); !text {
			all = append(all, gormplugin.Model{Struct: m, Tags: map[string]string{"ID": ""}})
		}
	}
	return all
}

// perform runs a program on empty tables and returns all its results.
func perform(t *testing.T, db *gorm.DB, p program) string {
	t.Helper()
	all := db.Session(&gorm.Session{AllowGlobalUpdate: true})
	must(t, all.Model(&gormtests.User{}).Unscoped().Updates(map[string]any{"manager_id": nil, "company_id": nil}).Error)
	for _, table := range []string{"like_user_speaks", "like_user_friends", "like_tools", "like_toys", "like_pets", "like_accounts", "like_users", "like_languages", "like_companies"} {
		must(t, all.Exec("DELETE FROM "+table).Error)
	}
	play := &play{DB: db}
	p.run(play)
	return play.tell(t)
}

// play is one run of a program.
type play struct {
	*gorm.DB

	notes []any
}

// note stores values that will be compared: errors, numbers, and rows.
func (p *play) note(values ...any) {
	for _, v := range values {
		if tx, ok := v.(*gorm.DB); ok {
			p.notes = append(p.notes, tx.RowsAffected, tx.Error)
			continue
		}
		p.notes = append(p.notes, v)
	}
}

// names are the names of all rows: by table, then by key.
type names map[string]map[string]string

// tell returns the notes and the tables with names instead of keys.
func (p *play) tell(t *testing.T) string {
	t.Helper()
	tables := map[string][]map[string]any{}
	named := names{}
	for table, column := range map[string]string{"companies": "name", "users": "name", "accounts": "number", "pets": "name", "toys": "name", "tools": "name", "languages": "code", "user_speaks": "", "user_friends": ""} {
		var rows []map[string]any
		must(t, p.Table("like_"+table).Find(&rows).Error)
		tables[table] = rows
		named[table] = map[string]string{}
		for _, row := range rows {
			named[table][word(row["id"])] = table + ":" + word(row[column])
		}
	}
	var b strings.Builder
	for i, v := range p.notes {
		fmt.Fprintf(&b, "%d: ", i)
		named.write(&b, reflect.ValueOf(v), "", 0)
		b.WriteString("\n")
	}
	for _, table := range []string{"companies", "users", "accounts", "pets", "toys", "tools", "languages", "user_speaks", "user_friends"} {
		fmt.Fprintf(&b, "%s\n%s\n", table, strings.Join(named.lines(table, tables[table]), "\n"))
	}
	return b.String()
}

// lines returns the rows of a table, sorted.
func (n names) lines(table string, rows []map[string]any) (all []string) {
	for _, row := range rows {
		var parts []string
		for column, v := range row {
			to := n.refersTo(table, column, row)
			switch {
			case word(v) == "":
			case to != nil:
				v = to[word(v)]
			case strings.HasSuffix(column, "_at"):
				v = "set" // drivers differ in how they return a time
			}
			parts = append(parts, column+"="+word(v))
		}
		slices.Sort(parts)
		all = append(all, strings.Join(parts, " "))
	}
	slices.Sort(all)
	return all
}

// refersTo returns the names of the rows to which the keys of a column refer.
func (n names) refersTo(table, column string, row map[string]any) map[string]string {
	switch column {
	case "id":
		return n[table]
	case "user_id", "friend_id", "manager_id":
		return n["users"]
	case "company_id":
		return n["companies"]
	case "owner_id":
		return n[strings.TrimPrefix(word(row["owner_type"]), "like_")]
	case "custom_id":
		return n[strings.TrimPrefix(word(row["type"]), "like_")]
	}
	return nil
}

// tableOf maps a model's field to the table to which its keys refer. The keys of polymorphic rows
// are compared only in the tables.
var tableOf = map[string]string{
	"User.ID": "users", "Account.ID": "accounts", "Pet.ID": "pets", "Toy.ID": "toys", "Tools.ID": "tools", "Company.ID": "companies",
	"User.ManagerID": "users", "User.CompanyID": "companies", "Account.UserID": "users", "Pet.UserID": "users",
	"Toy.OwnerID": "?", "Tools.CustomID": "?",
}

// write writes a value. in is the model of the field.
func (n names) write(b *strings.Builder, v reflect.Value, in string, depth int) {
	switch {
	case !v.IsValid():
		b.WriteString("nil")
	case v.Type() == reflect.TypeFor[time.Time]():
		b.WriteString("time")
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Interface && v.IsNil():
		b.WriteString("nil")
	case v.CanInterface() && v.Type().Implements(reflect.TypeFor[error]()):
		b.WriteString(withoutNumbers(v.Interface().(error)))
	case v.Kind() == reflect.Pointer, v.Kind() == reflect.Interface:
		n.write(b, v.Elem(), in, depth)
	case v.Kind() == reflect.Struct:
		n.writeStruct(b, v, in, depth)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			n.write(b, v.Index(i), in, depth)
			b.WriteString(",")
		}
	default:
		fmt.Fprint(b, v.Interface())
	}
}

func (n names) writeStruct(b *strings.Builder, v reflect.Value, in string, depth int) {
	if depth > 5 { // friends of friends
		return
	}
	if v.Type() != reflect.TypeFor[gorm.Model]() {
		in = v.Type().Name()
	}
	b.WriteString("{")
	for i := range v.NumField() {
		f := v.Type().Field(i)
		table, isKey := tableOf[in+"."+f.Name]
		switch {
		case isKey:
			b.WriteString(f.Name + "=" + n.key(table, v.Field(i)) + " ")
		case !reflect.ValueOf(v.Field(i).Interface()).IsValid() || v.Field(i).IsZero():
		default:
			b.WriteString(f.Name + "=")
			n.write(b, v.Field(i), in, depth+1)
			b.WriteString(" ")
		}
	}
	b.WriteString("}")
}

// key returns the name of the row with the key. For a missing row it says so, and whether there is
// a key at all.
func (n names) key(table string, v reflect.Value) string {
	text := strings.Trim(word(v.Interface()), "{}")
	text, _, _ = strings.Cut(text, " ") // sql.NullInt64
	name, there := n[table][text]
	switch {
	case text == "" || text == "0":
		return "none"
	case there:
		return name
	case table == "?":
		return "some"
	}
	return "of no row"
}

// word writes a value that a driver may return in several types.
func word(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []byte:
		return string(v)
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer {
		if r.IsNil() {
			return ""
		}
		return word(r.Elem().Interface())
	}
	return fmt.Sprint(v)
}

var digits = regexp.MustCompile(`[0-9]+`)

func withoutNumbers(err error) string {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return gorm.ErrRecordNotFound.Error()
	}
	return digits.ReplaceAllString(err.Error(), "#")
}
