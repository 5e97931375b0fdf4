package gormplugin

import (
	"database/sql"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"gorm.io/gorm"
)

// batches remembers the batches of CreateInBatches. gorm stores them in one
// transaction, which it rolls back when a later batch fails; the rows of the
// earlier ones, whose statements are long over, must lose their keys then.
//
// No callback tells that a statement is a batch. The call stack does: it is
// looked at for slices in transactions only. Which batches belong together shows
// in memory: they are neighbouring parts of one array. It is safe for concurrent
// use.
type batches struct {
	mu sync.Mutex
	of map[any][]batch // by weak pointer to the transaction; a cleanup removes it
}

// batch is one statement of a CreateInBatches.
type batch struct {
	array    uintptr // where the array ends, which is the same for all batches
	from, to uintptr // the part of it
	filling  *filling
}

// settle ends the statement of a batch; false when it is none.
func (b *batches) settle(db *gorm.DB, fl *filling) bool {
	this, ok := batchOf(db.Statement, fl)
	key, remembers := transaction(db.Statement.ConnPool)
	if !ok || !remembers || db.DisableNestedTransaction || !isInBatches() {
		return false
	}
	if db.Error == nil {
		b.add(db.Statement.ConnPool, key, this)
		return true
	}
	for _, earlier := range b.before(key, this) {
		earlier.filling.takeBack(db.Statement.Context)
	}
	fl.takeBack(db.Statement.Context)
	return false
}

// batchOf returns where the statement's rows lie, when they are a slice. Newer
// versions of gorm give each batch as a pointer to one.
func batchOf(stmt *gorm.Statement, fl *filling) (batch, bool) {
	v := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if v.Kind() != reflect.Slice {
		return batch{}, false
	}
	size := v.Type().Elem().Size()
	from := v.Pointer()
	return batch{from + uintptr(v.Cap())*size, from, from + uintptr(v.Len())*size, fl}, true
}

// transaction returns what stands for a transaction in the map.
func transaction(c gorm.ConnPool) (key any, ok bool) {
	switch tx := c.(type) {
	case *sql.Tx:
		return weak.Make(tx), true
	case *gorm.PreparedStmtTX:
		return weak.Make(tx), true
	}
	return nil, false
}

func (b *batches) add(c gorm.ConnPool, key any, this batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[any][]batch{}
	}
	if _, known := b.of[key]; !known {
		switch tx := c.(type) {
		case *sql.Tx:
			runtime.AddCleanup(tx, b.drop, key)
		case *gorm.PreparedStmtTX:
			runtime.AddCleanup(tx, b.drop, key)
		}
	}
	b.of[key] = append(b.of[key], this)
}

func (b *batches) drop(key any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, key)
}

// before returns the batches that stand before this one: of two calls with the
// same slice those of the later one.
func (b *batches) before(key any, this batch) (all []batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, earlier := range slices.Backward(b.of[key]) {
		if earlier.array == this.array && earlier.to == this.from {
			this = earlier
			all = append(all, this)
		}
	}
	return all
}

// isInBatches reports whether gorm executes the statement for a CreateInBatches
// that began a transaction, or set a savepoint, of its own.
func isInBatches() bool {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	executed := false
	for {
		frame, more := frames.Next()
		switch {
		case executed && strings.HasPrefix(frame.Function, "gorm.io/gorm.(*DB).CreateInBatches.func"):
			next, _ := frames.Next()
			return strings.HasPrefix(next.Function, "gorm.io/gorm.(*DB).Transaction")
		case executed || !more:
			return false
		}
		executed = frame.Function == "gorm.io/gorm.(*processor).Execute"
	}
}
