// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

// otherSetups change the job of a sales, each in one thing that decides where
// rows go or which ids they get, and say how that is called.
func otherSetups(t *testing.T) map[string]func(*migrate.Config) {
	t.Helper()
	key := [16]byte{1, 2, 3}
	return map[string]func(*migrate.Config){
		"table invoices: rule":         func(c *migrate.Config) { c.Tables[0].Rule = sharding.Mod(8) },
		"table papers: sharding key":   func(c *migrate.Config) { c.Tables[3].Key = "id" },
		"table invoices: ids":          func(c *migrate.Config) { c.Tables[0].IDs = migrate.Affine(10, 7) },
		"table lines: ids":             func(c *migrate.Config) { c.Tables[1].IDs = migrate.Keyed(key) },
		"table tags: references":       func(c *migrate.Config) { c.Tables[2].References = nil },
		"table papers: targets":        func(c *migrate.Config) { c.Tables[3].Map = mapOf(t, "b", "a") },
		"its tables were invoices, li": func(c *migrate.Config) { c.Tables[0], c.Tables[3] = c.Tables[3], c.Tables[0] },
		"tables were invoices, lines,": func(c *migrate.Config) { c.Tables = c.Tables[:3] },
	}
}

func mapOf(t *testing.T, dbs ...string) sharding.Map {
	t.Helper()
	m, err := sharding.Spread(dbs, 4, "papers_%02d")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// verbs are all that go on with a job, or compare by its configuration.
var verbs = map[string]func(context.Context, *migrate.Job) error{
	"Run":    func(ctx context.Context, j *migrate.Job) error { return j.Run(ctx) },
	"Follow": func(ctx context.Context, j *migrate.Job) error { return j.Follow(ctx) },
	"Verify": func(ctx context.Context, j *migrate.Job) error { _, err := j.Verify(ctx); return err },
	"Cutover": func(ctx context.Context, j *migrate.Job) error {
		_, err := j.Cutover(ctx, time.Minute)
		return err
	},
	"Rollback": func(ctx context.Context, j *migrate.Job) error {
		_, err := j.Rollback(ctx, time.Minute)
		return err
	},
}

// checkSetups fails unless no verb does anything for a job that was begun otherwise.
func checkSetups(t *testing.T, s *sales) {
	t.Helper()
	before, err := s.job(t).Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range otherSetups(t) {
		j := s.job(t, func(c *migrate.Config) { c.Name = "invoices" }, change)
		for name, verb := range verbs {
			var setup *migrate.SetupError
			if err := verb(t.Context(), j); !errors.As(err, &setup) || !errors.Is(err, migrate.ErrChanged) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: %v", want, name, err)
			}
		}
	}
	after, err := s.job(t).Progress(t.Context())
	if err != nil || after.Phase != before.Phase || after.Epoch != before.Epoch {
		t.Errorf("the job was %+v and is %+v (%v)", before, after, err)
	}
}

func TestAJobIsLedWithTheConfigurationThatItWasBegunWithOnly(t *testing.T) {
	s := newSales(t, migrate.Affine(10, 3), 20)
	if err := s.job(t).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkSetups(t, s)
	if _, err := s.job(t).Cutover(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	checkSetups(t, s)
	if _, err := s.job(t).Rollback(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.job(t).Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAJobDetectsAnotherKeyOfIDsAndDisclosesNone(t *testing.T) {
	s := newSales(t, migrate.Keyed([16]byte{1}), 20)
	if err := s.job(t).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.ids = migrate.Keyed([16]byte{2})
	if _, err := s.job(t).Cutover(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), "table invoices: ids") {
		t.Errorf("another key: %v", err)
	}
	first, err := migrate.Keyed([16]byte{1}).New(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM shardid_span WHERE setup LIKE '%' || ? || '%'", first); n != 0 {
		t.Errorf("%d tables tell what becomes of an id", n)
	}
}

// Rules without a description are identified by the slots that they give.
func TestACallersOwnRuleIsIdentifiedByItsSlots(t *testing.T) {
	s := newShop(t, 20)
	by := func(rule sharding.Rule) *migrate.Job {
		return s.job(t, "id", func(c *migrate.Config) { c.Tables[0].Rule = rule })
	}
	own := func(n int64) sharding.Rule {
		return sharding.Func(4, func(key any) (sharding.Slot, error) {
			id, err := strconv.ParseInt(fmt.Sprint(key), 10, 64)
			if err != nil {
				return 0, sharding.ErrKeyType
			}
			return sharding.Slot(id / n & 3), nil
		})
	}
	if err := by(own(5)).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := by(own(5)).Run(t.Context()); err != nil {
		t.Errorf("the same rule: %v", err)
	}
	for name, rule := range map[string]sharding.Rule{"another": own(7), "one of ranges": sharding.Ranges(5, 10, 15)} {
		if err := by(rule).Run(t.Context()); !errors.Is(err, migrate.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A job without stored digests is accepted.
func TestAJobWithoutANotedConfigurationGoesOn(t *testing.T) {
	s := newShop(t, 20)
	if err := s.job(t, "id").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, s.source, "UPDATE shardid_span SET setup = ''")
	if _, err := s.job(t, "id").Cutover(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

// Abort works with any configuration.
func TestAJobCanBeAbortedWithAnotherRule(t *testing.T) {
	s := newShop(t, 20)
	if err := s.job(t, "id").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := s.job(t, "user_id")
	if err := other.Run(t.Context()); !errors.Is(err, migrate.ErrChanged) {
		t.Fatalf("%v", err)
	}
	if err := other.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := other.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.compare(t, orders(t, "user_id"), "orders")
}
