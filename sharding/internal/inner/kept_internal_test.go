// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"database/sql/driver"
	"strconv"
	"testing"
)

type noStmt struct{ driver.Stmt }

func (noStmt) Close() error { return nil }

func TestStatementsThatAConnectionKeepsAreBounded(t *testing.T) {
	k, st := &Kept{}, &Statement{}
	for i := range maxKept {
		if !k.keep(st, strconv.Itoa(i), noStmt{}) {
			t.Fatal(i)
		}
	}
	if k.keep(st, "one more", noStmt{}) || k.find(&Statement{}, "7") != nil || k.find(st, "7") == nil {
		t.Error("one more is kept, or those of another statement are found")
	}
	if err := k.close(&Statement{}); err != nil || len(k.prepared) != maxKept {
		t.Errorf("%v, and %d are left by another statement", err, len(k.prepared))
	}
	if err := k.close(st); err != nil || !k.keep(st, "one more", noStmt{}) {
		t.Error("a statement that is closed keeps its place", err)
	}
}
