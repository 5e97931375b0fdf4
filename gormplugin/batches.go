// SPDX-License-Identifier: Apache-2.0

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

// batches records the batches of CreateInBatches. gorm stores all batches in one transaction and
// rolls it back when a later batch fails. The rows of earlier batches, whose statements have
// already ended, must then lose their keys.
//
// No gorm callback tells that a statement is a batch, so isInBatches reads the call stack, for
// slices in transactions only. The batches of one call are adjacent parts of one array, by which
// they are recognised. A batches is safe for concurrent use.
type batches struct {
	mu sync.Mutex
	of map[weak.Pointer[sql.Tx]][]batch // by transaction; a cleanup removes it
}

// batch is one statement of a CreateInBatches.
type batch struct {
	array    uintptr // the end of the array, which is the same for all batches
	from, to uintptr // the batch's part of the array
	filling  *filling
}

// settle ends the statement of a batch. It returns false when the statement is not a batch.
func (b *batches) settle(db *gorm.DB, fl *filling) bool {
	this, ok := batchOf(db.Statement, fl)
	pool := db.Statement.ConnPool
	if prepared, cached := pool.(*gorm.PreparedStmtTX); cached {
		pool = prepared.Tx
	}
	tx, inTx := pool.(*sql.Tx)
	if !ok || !inTx || db.DisableNestedTransaction || !isInBatches() {
		return false
	}
	if db.Error == nil {
		b.add(tx, this)
		return true
	}
	for _, earlier := range b.before(tx, this) {
		earlier.filling.clearKeys(db.Statement.Context)
	}
	fl.clearKeys(db.Statement.Context)
	return false
}

// batchOf returns the part of an array that holds the statement's rows, if they are a slice. Newer
// versions of gorm pass each batch as a pointer to a slice.
func batchOf(stmt *gorm.Statement, fl *filling) (batch, bool) {
	v := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if v.Kind() != reflect.Slice {
		return batch{}, false
	}
	size := v.Type().Elem().Size()
	from := v.Pointer()
	return batch{from + uintptr(v.Cap())*size, from, from + uintptr(v.Len())*size, fl}, true
}

func (b *batches) add(tx *sql.Tx, this batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[weak.Pointer[sql.Tx]][]batch{}
	}
	key := weak.Make(tx)
	if b.of[key] == nil {
		runtime.AddCleanup(tx, b.drop, key)
	}
	b.of[key] = append(b.of[key], this)
}

func (b *batches) drop(key weak.Pointer[sql.Tx]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, key)
}

// before returns the batches that precede this one. Of two calls with the same slice it returns
// those of the later call.
func (b *batches) before(tx *sql.Tx, this batch) (all []batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, earlier := range slices.Backward(b.of[weak.Make(tx)]) {
		if earlier.array == this.array && earlier.to == this.from {
			this = earlier
			all = append(all, this)
		}
	}
	return all
}

// isInBatches returns true when gorm executes the statement for a CreateInBatches that began
// its own transaction or set its own savepoint.
func isInBatches() bool {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if frame.Function == "gorm.io/gorm.(*processor).Execute" {
			caller, _ := frames.Next()
			outer, _ := frames.Next()
			return strings.HasPrefix(caller.Function, "gorm.io/gorm.(*DB).CreateInBatches.func") && strings.HasPrefix(outer.Function, "gorm.io/gorm.(*DB).Transaction")
		}
	}
	return false
}
