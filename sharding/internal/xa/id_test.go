// SPDX-License-Identifier: Apache-2.0

package xa

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

func TestOnlyNamesOfThisModuleAreParsed(t *testing.T) {
	id := ID{NewTransaction(), NewTransaction(), 12}
	if got, ours := parse(id.gid()); !ours || got != id {
		t.Errorf("%+v of %s", got, id.gid())
	}
	if text := id.on(dialect.Postgres{}); text != "'"+id.gid()+"'" || len(text) > 200 {
		t.Error(text)
	}
	branch := id.Decider + "-12"
	if text := id.on(dialect.MySQL{}); text != "'"+id.Transaction+"','"+branch+"',1936222564" {
		t.Error(text)
	}
	if got, ours := parseXID(format, 32, len(branch), id.Transaction+branch); !ours || got != id {
		t.Errorf("%+v", got)
	}
	if len(id.Transaction) > 64 || len(branch) > 64 {
		t.Error("longer than an XID may be")
	}
	for _, gid := range []string{"", "shardid-", "theirs", "shardid-" + id.Transaction, "shardid-x-y-1", strings.Replace(id.gid(), "-12", "-0", 1), strings.Replace(id.gid(), "-12", "-x", 1), id.gid() + "-1", "x" + id.gid()} {
		if got, ours := parse(gid); ours {
			t.Errorf("%q is %+v", gid, got)
		}
	}
	for _, c := range []struct {
		format       int64
		gtrid, bqual int
		data         string
	}{
		{1, 32, len(branch), id.Transaction + branch}, {format, 31, len(branch) + 1, id.Transaction + branch}, {format, 32, len(branch) - 1, id.Transaction + branch},
		{format, -1, 3, "ab"}, {format, 0, 0, ""}, {format, 6, 0, "theirs"},
	} {
		if got, ours := parseXID(c.format, c.gtrid, c.bqual, c.data); ours {
			t.Errorf("%+v is %+v", c, got)
		}
	}
}
