// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"database/sql"
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
