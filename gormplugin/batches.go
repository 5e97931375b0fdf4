// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"reflect"
	"runtime"
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
// slices in transactions only. The batches of one call have the gorm.Config that gorm copies for
// its transaction or savepoint, by which they are recognised. A batches is safe for concurrent use.
type batches struct {
	mu sync.Mutex
	of map[weak.Pointer[gorm.Config]][]*filling // by call; a cleanup removes it
}

// settle ends the statement of a batch. It returns false when the statement is not a batch.
func (b *batches) settle(db *gorm.DB, fl *filling) bool {
	if reflect.Indirect(reflect.ValueOf(db.Statement.Dest)).Kind() != reflect.Slice || db.DisableNestedTransaction || !isInBatches() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	call := weak.Make(db.Config)
	earlier := b.of[call]
	if db.Error == nil {
		if len(earlier) == 0 {
			runtime.AddCleanup(db.Config, b.drop, call)
		}
		b.of[call] = append(earlier, fl)
		return true
	}
	delete(b.of, call)
	for _, undone := range append(earlier, fl) {
		undone.clearKeys(db.Statement.Context)
	}
	return false
}

// drop forgets the batches of a call that has ended.
func (b *batches) drop(call weak.Pointer[gorm.Config]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, call)
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
