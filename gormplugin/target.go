package gormplugin

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/shardid/shardid/sharding"
)

// run chooses the target, points the statement at it and lets gorm do the rest.
func (s *step) run(db *gorm.DB, core func(*gorm.DB)) error {
	if err := s.proveJoins(); err != nil {
		return err
	}
	own, err := s.aim()
	if err != nil {
		return err
	}
	var restore func()
	if s.op == "update" && s.assignsKey() {
		restore = s.keepKeys()
	}
	s.core(db, core)
	if restore != nil && refused(db.Error) {
		restore()
	}
	if own && s.op == "update" && isSave(s.stmt) && db.Error == nil && db.RowsAffected == 0 && !db.DryRun {
		s.stmt.ConnPool = s.next
		return s.confirmRow(db)
	}
	return nil
}

func refused(err error) bool {
	if err == nil {
		return false
	}
	var route *sharding.RouteError
	return errors.As(err, &route)
}

// keepKeys returns what puts the keys of the statement's structs back. gorm
// stores the new values of an UPDATE in them before anything is sent, and the
// next statement with such a struct would be about another row.
func (s *step) keepKeys() (restore func()) {
	var undo []func()
	for _, v := range s.structs() {
		for _, f := range append(s.leading(), s.stmt.Schema.PrimaryFields...) {
			if held, ok := fieldAt(v, f); ok && held.CanSet() {
				before := reflect.New(held.Type()).Elem()
				before.Set(held)
				undo = append(undo, func() { held.Set(before) })
			}
		}
	}
	return func() {
		for _, u := range undo {
			u()
		}
	}
}

// assignsKey reports whether gorm may store new keys in the statement's structs.
func (s *step) assignsKey() bool {
	if s.stmt.Schema == nil || reflect.TypeOf(s.stmt.Dest).Comparable() && s.stmt.Dest == s.stmt.Model {
		return false
	}
	dest, isMap := s.stmt.Dest.(map[string]any)
	for name := range dest {
		if f := s.stmt.Schema.LookUpField(name); f != nil && (f.PrimaryKey || s.table.Leads(f.DBName)) {
			return true
		}
	}
	return !isMap
}

// structs returns the addressable structs the statement is about.
func (s *step) structs() []reflect.Value {
	v := s.stmt.ReflectValue
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Struct && v.CanAddr() && v.Type() == s.stmt.Schema.ModelType:
		return []reflect.Value{v}
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Array:
		var list []reflect.Value
		for i := range v.Len() {
			if e := reflect.Indirect(v.Index(i)); e.IsValid() && e.CanAddr() && e.Type() == s.stmt.Schema.ModelType {
				list = append(list, e)
			}
		}
		return list
	}
	return nil
}

// leading returns the fields that lead to the slot.
func (s *step) leading() []*schema.Field {
	var fields []*schema.Field
	for name, f := range s.stmt.Schema.FieldsByDBName {
		if s.table.Leads(name) {
			fields = append(fields, f)
		}
	}
	return fields
}

// aim chooses the targets. own says that they come from a key in the model that
// is not part of its primary key.
func (s *step) aim() (own bool, err error) {
	snapshot := s.routing.router.Snapshot()
	target, placed, err := snapshot.Hinted(s.table.Name, s.hint)
	if err != nil {
		return false, err
	}
	set, own, err := s.find()
	switch {
	case err != nil:
		return false, err
	case placed:
		return own, s.place(target, set)
	case set.all && set.err == nil && s.mayFanOut():
		return own, s.fanOut()
	}
	return own, s.choose(set)
}

// place takes the target of a hint. Other rows than those of the target can be
// read there, and written, as somebody must who moves them; new rows cannot.
func (s *step) place(target sharding.Target, set keyset[sharding.Target]) error {
	if s.op == "create" && !set.only(target) {
		return s.refuse(sharding.ErrCrossShard, fmt.Sprintf("the hint says %s, and the keys lie on %v", target, set.of))
	}
	s.target, s.hinted = target, true
	return nil
}

// mayFanOut reports whether a statement without a key may go to all targets.
func (s *step) mayFanOut() bool {
	return s.hint.All || s.table.OnMissing == sharding.FanOutReads && !s.isWrite()
}

func (s *step) fanOut() error {
	targets, err := s.routing.router.Snapshot().Everywhere(s.table.Name)
	if err != nil {
		return err
	}
	s.everywhere = true
	if len(targets) == 1 {
		s.target = targets[0]
		return nil
	}
	return s.chooseMany(targets)
}

// database returns where to send what is for the target.
func (s *step) database(target sharding.Target) *sql.DB {
	if s.isWrite() || s.hint.Primary || txOf(s.next) != nil || wantsSource(s.stmt) {
		return s.routing.router.DB(target.DB)
	}
	if db := s.routing.replicas.pick(target.DB); db != nil {
		return db
	}
	return s.routing.router.DB(target.DB)
}

// core lets gorm build and run the statement on the target.
func (s *step) core(db *gorm.DB, core func(*gorm.DB)) {
	defer s.unpoint(s.point())
	s.stmt.ConnPool = s
	core(db)
	if db.DryRun && s.isMany() && db.Error == nil {
		_ = db.AddError(s.rehearse())
	}
}

// find returns the targets the statement concerns. own says that they come from
// a key in the model that is not part of its primary key.
func (s *step) find() (set keyset[sharding.Target], own bool, err error) {
	if s.op == "create" {
		set, err = s.rows()
		return set, false, err
	}
	set = s.where()
	if !set.all {
		return set, false, nil
	}
	why := set.err
	if set = s.model(); !set.all {
		return set, !s.keyField().PrimaryKey, nil
	}
	if set.err == nil {
		set.err = why
	}
	return set, false, nil
}

// choose sets the target.
func (s *step) choose(set keyset[sharding.Target]) error {
	switch {
	case set.all && set.err != nil:
		return s.refuse(set.err, "")
	case set.all:
		return s.refuse(sharding.ErrMissingKey, s.conditionHint())
	case len(set.of) > 1:
		return s.chooseMany(set.of)
	case len(set.of) == 1:
		s.target = set.of[0]
		return nil
	}
	return s.anywhere()
}

// chooseMany sets several targets, in the order of the table's.
func (s *step) chooseMany(of []sharding.Target) error {
	if err := s.limit(len(of)); err != nil {
		return err
	}
	for _, target := range s.table.Map.Targets() {
		if slices.Contains(of, target) {
			s.targets = append(s.targets, target)
		}
	}
	s.target = s.targets[0]
	return nil
}

// anywhere chooses the target of a statement whose condition no row can meet.
// It neither binds a transaction nor fails because of the one it is bound to.
func (s *step) anywhere() error {
	targets := s.table.Map.Targets()
	s.target = targets[0]
	tx := txOf(s.next)
	if tx == nil {
		return nil
	}
	db, err := tx.bound(s.stmt.Context)
	if err != nil {
		return err
	}
	here := slices.IndexFunc(targets, func(t sharding.Target) bool { return s.routing.router.DB(t.DB) == db })
	if here < 0 {
		s.next = tx.pool
		return nil
	}
	s.target = targets[here]
	return nil
}

// pointed is what point changed of a statement.
type pointed struct {
	table       string
	expr        *clause.Expr
	deletion    clause.Clause
	hadDeletion bool
}

// point makes the statement write the physical table's name. It returns what
// undoes that.
func (s *step) point() pointed {
	before := pointed{table: s.stmt.Table, expr: s.stmt.TableExpr}
	if s.op == "delete" {
		before.deletion, before.hadDeletion = s.stmt.Clauses["DELETE"]
	}
	s.pointAt(s.stmt, s.target)
	return before
}

func (s *step) unpoint(before pointed) {
	s.stmt.Table, s.stmt.TableExpr = before.table, before.expr
	switch {
	case s.op != "delete":
	case before.hadDeletion:
		s.stmt.Clauses["DELETE"] = before.deletion
	default:
		delete(s.stmt.Clauses, "DELETE")
	}
}

// pointAt makes stmt write the target's table.
func (s *step) pointAt(stmt *gorm.Statement, target sharding.Target) {
	s.writing = target
	stmt.TableExpr = s.routing.expr(stmt, s.table, target)
	switch {
	case s.op == "create", s.op == "delete" && s.routing.mysql && s.needsPlainDelete():
		stmt.Table, stmt.TableExpr = target.Table, nil
	case s.op == "delete" && s.routing.mysql:
		stmt.Clauses["DELETE"] = s.deleteFrom()
	}
}

// needsPlainDelete reports whether the statement has a clause that MySQL and
// MariaDB allow in no DELETE with an alias.
func (s *step) needsPlainDelete() bool {
	for _, name := range [...]string{"ORDER BY", "LIMIT", "RETURNING"} {
		if _, ok := s.stmt.Clauses[name]; ok {
			return true
		}
	}
	return false
}

// deleteFrom returns the clause DELETE `orders`, for FROM `orders_3` AS `orders`.
func (s *step) deleteFrom() clause.Clause {
	c := s.stmt.Clauses["DELETE"]
	d, ok := c.Expression.(clause.Delete)
	name := s.stmt.Quote(s.table.Name)
	if ok && strings.HasSuffix(d.Modifier, name) {
		return c // of the first target, and of all
	}
	c.Name = ""
	c.Expression = clause.Delete{Modifier: strings.TrimSpace(d.Modifier + " " + name)}
	return c
}

// rows reads the keys of the rows to be created.
func (s *step) rows() (keyset[sharding.Target], error) {
	var set keyset[sharding.Target]
	r, err := rowsOf(s.stmt)
	if err != nil {
		return set, err
	}
	field := s.keyField()
	var last int64
	for i := range r.len() {
		number, isNumber := r.number(i, field)
		if isNumber && i > 0 && number == last {
			continue // as the rows of one parent have it
		}
		last = number
		value, ok := s.rowKey(r, i, field)
		if !ok {
			return set, s.refuse(sharding.ErrMissingKey, fmt.Sprintf("row %d: set %s before Create", i, s.keyName(field)))
		}
		target, err := s.table.Target(value)
		if err != nil {
			return set, s.refuse(err, fmt.Sprintf("row %d", i))
		}
		set.add(target)
	}
	if len(set.of) == 0 {
		return set, gorm.ErrEmptySlice
	}
	return set, nil
}

// number returns the field of row i if it is an integer.
func (r rows) number(i int, field *schema.Field) (int64, bool) {
	if field == nil || !r.structs.IsValid() {
		return 0, false
	}
	row := r.at(i)
	if !row.IsValid() {
		return 0, false
	}
	v, ok := fieldAt(row, field)
	if !ok || !v.CanInt() || v.Int() == 0 {
		return 0, false
	}
	return v.Int(), true
}

// rowKey returns the sharding key of a new row.
func (s *step) rowKey(r rows, i int, field *schema.Field) (any, bool) {
	if !r.structs.IsValid() {
		value, ok := mapKey(r.maps[i], s.table.Key, field)
		return value, ok && bound(value) && !reflect.ValueOf(value).IsZero()
	}
	if field == nil {
		return nil, false
	}
	value, zero := field.ValueOf(s.stmt.Context, r.at(i))
	return value, !zero
}

func mapKey(m map[string]any, column string, field *schema.Field) (any, bool) {
	if field != nil {
		_, value, ok := inMap(m, field)
		return value, ok
	}
	value, ok := m[column]
	return value, ok
}

// keyField returns the field of the sharding key, nil if the model has none.
func (s *step) keyField() *schema.Field {
	if s.stmt.Schema == nil {
		return nil
	}
	for name, f := range s.stmt.Schema.FieldsByDBName {
		if strings.EqualFold(name, s.table.Key) {
			return f
		}
	}
	return nil
}

func (s *step) keyName(f *schema.Field) string {
	if f == nil {
		return s.table.Key
	}
	return "the field " + f.Name
}

// model reads the key from the struct that the statement is about. It counts
// only with the primary key, by which gorm then selects the row, and it is added
// to the condition, so that what is routed by is what the database compares.
func (s *step) model() keyset[sharding.Target] {
	field := s.keyField()
	if field == nil || len(s.stmt.Schema.PrimaryFields) == 0 {
		return unknown[sharding.Target](nil)
	}
	values := s.modelKeys(field)
	if len(values) == 0 {
		return unknown[sharding.Target](nil)
	}
	r := s.routing.read(s.stmt, s.table)
	set := r.keys(r.place, values)
	if !set.all && !field.PrimaryKey {
		column := clause.Column{Table: clause.CurrentTable, Name: field.DBName}
		s.stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: values}}})
	}
	return set
}

// modelKeys returns the sharding keys of the statement's structs, none unless
// every struct has it and its primary key.
func (s *step) modelKeys(field *schema.Field) []any {
	v := s.stmt.ReflectValue
	if s.op == "delete" && s.stmt.Model != nil && v.IsValid() && v.Kind() == reflect.Struct && !s.hasPrimary(v) {
		v = reflect.Indirect(reflect.ValueOf(s.stmt.Model)) // Model(&order).Delete(&Order{})
	}
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() == reflect.Struct:
		return s.structKeys(field, v)
	case s.op != "query" && s.op != "row" && (v.Kind() == reflect.Slice || v.Kind() == reflect.Array):
		elems := make([]reflect.Value, v.Len())
		for i := range elems {
			elems[i] = reflect.Indirect(v.Index(i))
		}
		return s.structKeys(field, elems...)
	}
	return nil
}

func (s *step) structKeys(field *schema.Field, structs ...reflect.Value) []any {
	var values []any
	for _, v := range structs {
		if !v.IsValid() || !s.hasPrimary(v) {
			return nil
		}
		value, zero := field.ValueOf(s.stmt.Context, v)
		if zero {
			return nil
		}
		values = append(values, value)
	}
	return values
}

// hasPrimary reports whether v is a value of the model with its whole primary
// key set.
func (s *step) hasPrimary(v reflect.Value) bool {
	if v.Type() != s.stmt.Schema.ModelType {
		return false
	}
	for _, f := range s.stmt.Schema.PrimaryFields {
		if _, zero := f.ValueOf(s.stmt.Context, v); zero {
			return false
		}
	}
	return true
}

// isSave reports whether the statement is the UPDATE of gorm's Save, which
// creates the row when no row was updated.
func isSave(stmt *gorm.Statement) bool {
	return slices.Contains(stmt.Selects, "*") &&
		reflect.TypeOf(stmt.Dest).Kind() == reflect.Pointer && stmt.Dest == stmt.Model
}

// confirmRow is asked after a Save that updated nothing, before gorm creates the
// row. If the struct's sharding key was changed, the row still stands in its old
// shard, and creating it here would make two of it. (MySQL also reports no
// updated row when nothing in it changed; then it is found here.)
func (s *step) confirmRow(db *gorm.DB) error {
	model := s.stmt.Schema
	query := db.Session(&gorm.Session{NewDB: true, Context: sharding.Primary(db.Statement.Context)}).Model(reflect.New(model.ModelType).Interface()).Table(s.table.Name).Unscoped()
	for _, f := range append([]*schema.Field{s.keyField()}, model.PrimaryFields...) {
		value, _ := f.ValueOf(s.stmt.Context, s.stmt.ReflectValue)
		query = query.Where(clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: f.DBName}, Value: value})
	}
	var found int64
	if err := query.Count(&found).Error; err != nil || found > 0 {
		return err
	}
	return s.refuse(sharding.ErrKeyChange, "no row with this primary key lies in the shard of this key; create a new row with Create, and move an old one by deleting and creating it")
}
