// SPDX-License-Identifier: Apache-2.0

package dialect

import "testing"

func TestAColumnTruncatesValuesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		typ      string
		holds    Holding
		value    any
		ignoring bool
		want     bool
	}{
		{"tinyint(4)", HoldsIntegers, int64(127), true, false},
		{"tinyint(4)", HoldsIntegers, int64(128), true, true},
		{"tinyint(4)", HoldsIntegers, int64(128), false, false}, // the server refuses it
		{"tinyint(4)", HoldsIntegers, int64(-128), true, false},
		{"int(10) unsigned", HoldsIntegers, int64(-1), true, true},
		{"int unsigned", HoldsIntegers, uint64(1<<32 - 1), true, false},
		{"bigint(20)", HoldsIntegers, uint64(1 << 63), true, true},
		{"bigint(20) unsigned", HoldsIntegers, uint64(1<<64 - 1), true, false},
		{"bigint(20)", HoldsIntegers, "9223372036854775808", true, true},
		{"decimal(3,0)", HoldsDecimals, int64(-999), true, false},
		{"decimal(3,0)", HoldsDecimals, int64(1000), true, true},
		{"decimal(3,0) unsigned", HoldsDecimals, int64(-1), true, true},
		{"varchar(3)", HoldsTexts, "界界界", true, false},
		{"varchar(3)", HoldsTexts, []byte("abcd"), true, true},
		{"varchar(3)", HoldsTexts, "abc ", false, true},
		{"varchar(3)", HoldsTexts, "abcd ", false, false}, // the server refuses it
		{"varchar(3)", HoldsTexts, int64(1234), true, true},
		{"character varying(3)", HoldsTexts, "abc ", false, true},
		{"character varying", HoldsTexts, "abc ", false, false},
		{"char(3)", HoldsTexts, "a ", false, true},
		{"varbinary(3)", HoldsBytes, "abc ", false, false}, // the server refuses it
		{"varbinary(3)", HoldsBytes, "界a", true, true},
		{"binary(3)", HoldsPadded, "ab", true, true},
		{"binary(3)", HoldsPadded, []byte("ab "), true, false},
		{"tinytext", HoldsTexts, string(make([]byte, 256)), true, true},
		{"longtext", HoldsTexts, string(make([]byte, 256)), true, false},
		{"datetime", HoldsClocks, "2026-01-02 ", true, false}, // nobody knows
	} {
		column := Column{Type: c.typ, Holds: c.holds}
		if got := column.Cuts(c.value, c.ignoring); got != c.want {
			t.Errorf("%s of %v, ignoring %v: %v", c.typ, c.value, c.ignoring, got)
		}
		if column.Lax = true; column.Cuts(c.value, false) != column.Cuts(c.value, true) {
			t.Errorf("%s of %v: a sql_mode that is not strict is not as IGNORE", c.typ, c.value)
		}
	}
}
