// SPDX-License-Identifier: Apache-2.0

package effects_test

import (
	"testing"

	"github.com/shardid/shardid/sharding/internal/effects"
)

func TestAStatementOnASavepointIsToldByItsText(t *testing.T) {
	for _, c := range []struct {
		text string
		verb effects.Savepoint
		name string
	}{
		{"SAVEPOINT a", effects.Set, "a"},
		{"/* x */ savepoint `A b`;", effects.Set, "a b"},
		{"RELEASE a", effects.Release, "a"},
		{"RELEASE SAVEPOINT \"a\"", effects.Release, "a"},
		{"ROLLBACK TO a", effects.RollbackTo, "a"},
		{"rollback work -- x\nto savepoint a", effects.RollbackTo, "a"},
		{"ROLLBACK", effects.NoSavepoint, ""},
		{"SAVEPOINT a; SAVEPOINT b", effects.NoSavepoint, ""},
		{"REPLACE INTO savepoint VALUES (1)", effects.NoSavepoint, ""},
		{"SELECT 'SAVEPOINT a'", effects.NoSavepoint, ""},
	} {
		if verb, name := effects.SavepointOf(c.text); verb != c.verb || name != c.name {
			t.Errorf("%s: %d of %q", c.text, verb, name)
		}
		if c.verb != effects.NoSavepoint && !effects.MayBeSavepoint(c.text) {
			t.Errorf("%s is not considered", c.text)
		}
	}
}

func TestASettingOfATransactionIsOneStatement(t *testing.T) {
	for text, sets := range map[string]bool{
		"SET LOCAL statement_timeout = 5;":                true,
		"SET CONSTRAINTS ALL DEFERRED":                    true,
		"SET TRANSACTION READ ONLY":                       true,
		"SET statement_timeout = 5":                       false,
		"SET LOCAL a = 1; SET LOCAL b = 2":                false,
		"SET LOCAL standard_conforming_strings = off":     false,
		"UPDATE settings SET local = 1 WHERE user_id = 5": false,
	} {
		if effects.SetsLocal(text) != sets {
			t.Error(text)
		}
	}
}
