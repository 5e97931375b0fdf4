// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func plan(t *testing.T, job *migrate.Job) migrate.Plan {
	t.Helper()
	p, err := job.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlanSaysWhatWillBeDoneAndDoesNothing(t *testing.T) {
	s := newShop(t, 20)
	p := plan(t, s.job(t, "user_id"))
	if len(p.Tables) != 1 || p.Tables[0].Rows != 20 || p.Tables[0].Key != "id" || p.Tables[0].ShardBy != "user_id" || len(p.Tables[0].Targets) != 4 || p.Seconds < 1 {
		t.Errorf("%+v", p)
	}
	var made []string
	for _, statement := range p.Statements {
		if strings.HasPrefix(statement.SQL, `CREATE TABLE "orders_`) {
			made = append(made, statement.Database)
		}
	}
	if strings.Join(made, " ") != "a b a b" {
		t.Errorf("shards are made on %v", made)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'shardid%'"); n != 0 {
		t.Errorf("%d objects were made on the source", n)
	}
	if n := count(t, s.shards["a"], "SELECT COUNT(*) FROM sqlite_schema"); n != 0 {
		t.Errorf("%d objects were made on a shard", n)
	}
}

func TestTheDigestOfAPlanStaysWhileTheTablesDo(t *testing.T) {
	s := newShop(t, 20)
	job := s.job(t, "user_id")
	before := plan(t, job).Digest
	if err := job.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, s.source, "INSERT INTO orders (user_id) VALUES (1)")
	if after := plan(t, job).Digest; after != before {
		t.Errorf("%s became %s, and nothing but rows was changed", before, after)
	}
}

func TestTheDigestOfAPlanChangesWithWhatItIsAbout(t *testing.T) {
	s := newShop(t, 20)
	seen := map[string]string{}
	note := func(what string, job *migrate.Job) {
		digest := plan(t, job).Digest
		if other, taken := seen[digest]; taken {
			t.Errorf("%s and %s have one digest", what, other)
		}
		seen[digest] = what
	}
	note("by user", s.job(t, "user_id"))
	note("by id", s.job(t, "id"))
	note("another rule", s.job(t, "id", func(c *migrate.Config) { c.Tables[0].Rule = sharding.Mod(8) }))
	note("a rule that does not tell", s.job(t, "id", func(c *migrate.Config) { c.Tables[0].Rule = sharding.Bits(4, 2) }))
	note("other tables", s.job(t, "id", func(c *migrate.Config) {
		c.Tables[0].Map, _ = sharding.Spread([]string{"b", "a"}, 4, "orders_%02d")
	}))
	exec(t, s.source, "CREATE INDEX orders_by_user ON orders (user_id)")
	note("an index", s.job(t, "id"))
	exec(t, s.source, "ALTER TABLE orders ADD COLUMN extra TEXT")
	note("a column", s.job(t, "id"))
}
