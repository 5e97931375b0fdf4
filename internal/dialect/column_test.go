// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"math"
	"testing"
)

func TestTheLargestIDOfAColumnIsThatOfItsType(t *testing.T) {
	for kind, want := range map[string]int64{
		"bigint": math.MaxInt64, "bigint(20)": math.MaxInt64, "bigint(20) unsigned": math.MaxInt64, "bigint unsigned": math.MaxInt64,
		"int": 1<<31 - 1, "int(11)": 1<<31 - 1, "int unsigned": 1<<32 - 1, "int(10) unsigned zerofill": 1<<32 - 1,
		"mediumint": 1<<23 - 1, "smallint unsigned": 1<<16 - 1, "tinyint(1)": 127,
		"double": 0, "decimal(20,0)": 0, "varchar(20)": 0, "point": 0, "": 0,
	} {
		if got := mostOf(MySQL{}, kind); got != want {
			t.Errorf("MySQL %s: %d, want %d", kind, got, want)
		}
	}
	for kind, want := range map[string]int64{"bigint": math.MaxInt64, "integer": 1<<31 - 1, "smallint": 1<<15 - 1, "double precision": 0, "numeric": 0, "text": 0} {
		if got := mostOf(Postgres{}, kind); got != want {
			t.Errorf("PostgreSQL %s: %d, want %d", kind, got, want)
		}
	}
	for kind, want := range map[string]int64{"bigint": math.MaxInt64, "integer": math.MaxInt64, "int(4)": math.MaxInt64, "": math.MaxInt64, "numeric": math.MaxInt64, "text": 0, "varchar(9)": 0, "real": 0, "double": 0, "float": 0} {
		if got := mostOf(SQLite{}, kind); got != want {
			t.Errorf("SQLite %s: %d, want %d", kind, got, want)
		}
	}
}
