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
// The rows of an INSERT choose theirs later, as gorm writes them.
func (s *step) run(db *gorm.DB, core func(*gorm.DB)) error {
	if s.op == "create" {
		return s.create(db, core)
	}
	if err := s.proveJoins(); err != nil {
		return err
	}
	if err := s.aim(); err != nil {
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
	return nil
}

// create runs an INSERT.
func (s *step) create(db *gorm.DB, core func(*gorm.DB)) error {
	if _, err := rowsOf(s.stmt); err != nil {
		return err
	}
	s.core(db, core)
	if s.at == nil { // it was refused: there is no text to be told
		s.stmt.SQL.Reset()
		s.stmt.Vars = nil
	}
	return nil
}

// insertBuilder points an INSERT at the shard of the rows that gorm is about to
// write. Refused, it is not sent, as no statement with an error is.
func insertBuilder(next clause.ClauseBuilder) clause.ClauseBuilder {
	return func(c clause.Clause, b clause.Builder) {
		stmt, s := stepOf(b)
		if s == nil || s.stmt != stmt || stmt.DB.Error != nil || !s.insert(&c) {
			build(next, c, b)
		}
	}
}

// insert aims an INSERT, and reports whether it has written the clause already.
func (s *step) insert(c *clause.Clause) bool {
	if err := s.aim(); err != nil {
		_ = s.stmt.AddError(err)
		return false
	}
	s.pointAt(s.stmt, s.at)
	insert, plain := c.Expression.(clause.Insert)
	if s.bare = plain && insert == (clause.Insert{}) && isBare(c); s.bare {
		_, _ = s.stmt.WriteString(s.at.insert)
	}
	return s.bare
}

// updateBuilder writes the name of the shard's table.
func updateBuilder(next clause.ClauseBuilder) clause.ClauseBuilder {
	return func(c clause.Clause, b clause.Builder) {
		stmt, s := stepOf(b)
		if update, plain := c.Expression.(clause.Update); s != nil && plain && update == (clause.Update{}) && isBare(&c) && s.isWriting(stmt) {
			_, _ = stmt.WriteString(s.writing.update)
			return
		}
		build(next, c, b)
	}
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

// aim chooses the targets.
func (s *step) aim() error {
	if s.hint != nil && s.hint.Placed() {
		return s.follow()
	}
	set, err := s.find()
	switch {
	case err != nil:
		return err
	case set.all && set.err == nil && s.mayFanOut():
		return s.fanOut()
	}
	return s.choose(set)
}

// follow takes the target of a hint. A target that was named as such is where all
// rows are read and changed, whatever their keys, as somebody must who moves them;
// only new rows have to belong there. A key that was named must be the
// statement's own, if that has one.
func (s *step) follow() error {
	target, _, err := s.snapshot.Hinted(s.table.Name, *s.hint)
	if err != nil {
		return err
	}
	set, err := s.find()
	if err != nil {
		return err
	}
	byKey := s.hint.Table != "" && !set.all
	if (s.op == "create" || byKey) && !set.only(target) {
		return s.refuse(sharding.ErrCrossShard, fmt.Sprintf("the hint says %s, and the statement's own keys lie on %v; correct the hint, or name the target with sharding.On", target, set.of))
	}
	s.at, s.hinted = s.spot(target), true
	return nil
}

// mayFanOut reports whether a statement without a key may go to all targets.
func (s *step) mayFanOut() bool {
	return s.hint != nil && s.hint.All || s.table.OnMissing == sharding.FanOutReads && !s.isWrite()
}

func (s *step) fanOut() error {
	targets, err := s.snapshot.Everywhere(s.table.Name)
	if err != nil {
		return err
	}
	s.everywhere = true
	if len(targets) == 1 {
		s.at = s.spot(targets[0])
		return nil
	}
	return s.chooseMany(targets)
}

// database returns where to send what is for the target.
func (s *step) database(at *spot) *sql.DB {
	if len(s.routing.replicas) == 0 || s.isWrite() || s.hint != nil && s.hint.Primary || txOf(s.next) != nil || wantsSource(s.stmt) {
		return at.db
	}
	if db := s.routing.replicas.pick(at.target.DB); db != nil {
		return db
	}
	return at.db
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

// find returns the targets the statement concerns.
func (s *step) find() (keyset[sharding.Target], error) {
	if s.op == "create" {
		return s.rows()
	}
	set := *s.where()
	if !set.all {
		return set, nil
	}
	why := set.err
	if set = s.model(); set.all && set.err == nil {
		set.err = why
	}
	return set, nil
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
		s.at = s.spot(set.of[0])
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
	s.at = s.spot(s.targets[0])
	return nil
}

// anywhere chooses the target of a statement whose condition no row can meet.
// It neither binds a transaction nor fails because of the one it is bound to.
func (s *step) anywhere() error {
	targets := s.table.Map.Targets()
	s.at = s.spot(targets[0])
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
	s.at = s.spot(targets[here])
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
	if s.op != "create" {
		s.pointAt(s.stmt, s.at)
	}
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
func (s *step) pointAt(stmt *gorm.Statement, at *spot) {
	s.writing = at
	stmt.TableExpr = &at.expr
	switch {
	case s.op == "create", s.op == "delete" && s.routing.mysql && s.needsPlainDelete():
		stmt.Table, stmt.TableExpr = at.target.Table, nil
	case s.op == "delete" && s.routing.mysql:
		stmt.Clauses["DELETE"] = s.deleteFrom()
	}
}

// isWriting reports whether stmt is about to write the name of a shard's table.
func (s *step) isWriting(stmt *gorm.Statement) bool {
	return s.writing != nil && stmt.TableExpr == &s.writing.expr
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
	name := s.stmt.Quote(s.alias)
	if ok && strings.HasSuffix(d.Modifier, name) {
		return c // of the first target, and of all
	}
	c.Name = ""
	c.Expression = clause.Delete{Modifier: strings.TrimSpace(d.Modifier + " " + name)}
	return c
}

// rows reads the keys of the rows that the INSERT sends.
func (s *step) rows() (keyset[sharding.Target], error) {
	set := keyset[sharding.Target]{of: s.room[:0]}
	values, key, err := s.values()
	if err != nil {
		return set, err
	}
	if err := s.proveGenes(values, key); err != nil {
		return set, err
	}
	for i, row := range values.Values {
		if i > 0 && isSameNumber(row[key], values.Values[i-1][key]) {
			continue // as the rows of one parent have it
		}
		target, err := s.rowTarget(i, row[key])
		if err != nil {
			return set, err
		}
		set.add(target)
	}
	if len(set.of) == 0 {
		return set, gorm.ErrEmptySlice
	}
	return set, nil
}

// keyField returns the field of the sharding key, nil if the model has none.
func (s *step) keyField() *schema.Field { return columnField(s.stmt.Schema, s.table.Key) }

// model reads the key from the struct that the statement is about. It counts
// only with the primary key, by which gorm then selects the row, and it is added
// to the condition, so that what is routed by is what the database compares.
func (s *step) model() keyset[sharding.Target] {
	if s.stmt.Schema == nil || len(s.stmt.Schema.PrimaryFields) == 0 {
		return unknown[sharding.Target](nil)
	}
	field := s.keyField()
	var values []any
	if field != nil {
		values = s.modelKeys(field)
	}
	if len(values) == 0 {
		return s.primary()
	}
	r := s.read(s.stmt)
	set := r.keys(r.place, values)
	if !set.all && !field.PrimaryKey {
		column := clause.Column{Table: clause.CurrentTable, Name: field.DBName}
		s.stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.IN{Column: column, Values: values}}})
	}
	return set
}

// primary reads the columns of the model's primary key that lead to the shard. gorm
// selects the row by them.
func (s *step) primary() keyset[sharding.Target] {
	if len(s.table.Also) == 0 {
		return unknown[sharding.Target](nil)
	}
	r := s.read(s.stmt)
	for _, field := range s.stmt.Schema.PrimaryFields {
		place := r.also(field.DBName)
		if place == nil {
			continue
		}
		if values := s.modelKeys(field); len(values) > 0 {
			return r.keys(place, values)
		}
	}
	return unknown[sharding.Target](nil)
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
