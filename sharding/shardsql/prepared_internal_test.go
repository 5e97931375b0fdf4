// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql"
	"database/sql/driver"
	"strconv"
	"testing"
)

func TestPreparedTextsOfADatabaseAreBounded(t *testing.T) {
	var p prepared
	a, b := new(sql.DB), new(sql.DB)
	var all []*shared
	for i := range maxPrepared {
		all = append(all, p.join(a, strconv.Itoa(i)))
	}
	if p.join(a, "one more") != nil {
		t.Error("there are more than maxPrepared")
	}
	if p.join(a, "7") != all[7] || p.join(b, "one more") == nil {
		t.Error("a text that is there, or another database, is not joined")
	}
	for range 2 {
		if err := p.leave(all[7]); err != nil {
			t.Error(err)
		}
	}
	if p.join(a, "one more") == nil {
		t.Error("a text that nobody uses keeps its place")
	}
}

type noStmt struct{ driver.Stmt }

func (noStmt) Close() error { return nil }

func TestStatementsThatAConnectionKeepsAreBounded(t *testing.T) {
	k, st := &kept{}, &statement{}
	for i := range maxKept {
		if !k.keep(st, strconv.Itoa(i), noStmt{}) {
			t.Fatal(i)
		}
	}
	if k.keep(st, "one more", noStmt{}) || k.find(&statement{}, "7") != nil || k.find(st, "7") == nil {
		t.Error("one more is kept, or those of another statement are found")
	}
	if err := k.close(&statement{}); err != nil || len(k.prepared) != maxKept {
		t.Errorf("%v, and %d are left by another statement", err, len(k.prepared))
	}
	if err := k.close(st); err != nil || !k.keep(st, "one more", noStmt{}) {
		t.Error("a statement that is closed keeps its place", err)
	}
}
