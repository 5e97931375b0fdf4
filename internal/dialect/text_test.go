// SPDX-License-Identifier: Apache-2.0

package dialect

import "testing"

func TestTextTranslatesAStatementToTheDialect(t *testing.T) {
	const statement = `UPDATE "shard_map" SET "version" = ?, "slot" = "slot" + 1 WHERE "name" = ? AND note = 'x'`
	for _, c := range []struct {
		d    Dialect
		want string
	}{
		{MySQL{}, "UPDATE `shard_map` SET `version` = ?, `slot` = `slot` + 1 WHERE `name` = ? AND note = 'x'"},
		{SQLite{}, statement},
		{Postgres{}, `UPDATE "shard_map" SET "version" = $1, "slot" = "slot" + 1 WHERE "name" = $2 AND note = 'x'`},
	} {
		if got := Text(c.d, statement); got != c.want {
			t.Errorf("%s: %s", c.d.Name(), got)
		}
	}
}
