// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/schema/migrate"
	"github.com/shardid/shardid/sharding"
)

func TestConfigurationsOfIDsThatCannotWorkNameTheField(t *testing.T) {
	s := openSales(t, t.TempDir(), migrate.KeepIDs())
	for want, change := range map[string]func(*migrate.Config){
		"IDs: Affine(0, 3)":               func(c *migrate.Config) { c.IDs = migrate.Affine(0, 3) },
		"IDs: Affine(2, -1)":              func(c *migrate.Config) { c.Tables[1].IDs = migrate.Affine(2, -1) },
		"IDs: keygen: the key":            func(c *migrate.Config) { c.IDs = migrate.Keyed([16]byte{}) },
		"IDs: MapTable":                   func(c *migrate.Config) { c.IDs = migrate.MapTable(nil) },
		"IDs: MapTable: the generator":    func(c *migrate.Config) { c.IDs = migrate.MapTable(keygen.Func[int64](nil)) },
		"References: Table: \"nowhere\"":  func(c *migrate.Config) { c.Tables[2].References[0].Table = "nowhere" },
		"table \"tags\": References: Col": func(c *migrate.Config) { c.Tables[2].References[0].Column = "a\x00b" },
		"table \"lines\": Via":            func(c *migrate.Config) { c.Tables[1].Via = "a\x00b" },
	} {
		cfg := s.config(t)
		change(&cfg)
		if _, err := migrate.New(cfg); !errors.Is(err, migrate.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestTablesThatDoNotHangTogetherAreRefused(t *testing.T) {
	for want, change := range map[string]func(*migrate.Config){
		"no foreign key leads from what": func(c *migrate.Config) { c.Tables[1].Via = "what" },
		"no column customer_id":          func(c *migrate.Config) { c.Tables[1].Via = "" },
		"lead in a circle":               func(c *migrate.Config) { c.Tables[0].Via = "twin_id" },
		"refers to both invoices and papers": func(c *migrate.Config) {
			c.Tables[1].References = []migrate.Reference{{Column: "invoice_id", Table: "papers"}}
		},
		"no column nothing, which References n": func(c *migrate.Config) {
			c.Tables[1].References = []migrate.Reference{{Column: "nothing", Table: "papers"}}
		},
	} {
		s := newSales(t, migrate.KeepIDs(), 3)
		j := s.job(t, change)
		if err := j.Run(t.Context()); !errors.Is(err, migrate.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		found, err := j.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(found); !migrate.Blocked(found) || !strings.Contains(text, want) {
			t.Errorf("%s: Inspect found %s", want, text)
		}
	}
}

func TestAnIDWithoutANewOneIsRefusedBeforeAnythingIsCopied(t *testing.T) {
	for _, id := range []int64{-4, 1 << 60} {
		s := newSales(t, migrate.Affine(100, 1), 3)
		exec(t, s.source, fmt.Sprintf("INSERT INTO invoices (id, customer_id) VALUES (%d, 1)", id))
		j := s.job(t)
		_, planErr := j.Plan(t.Context())
		for _, err := range []error{j.Run(t.Context()), planErr} {
			if !errors.Is(err, migrate.ErrUnsupported) || !errors.Is(err, migrate.ErrNoID) || !strings.Contains(err.Error(), strconv.FormatInt(id, 10)) {
				t.Errorf("%d: %v", id, err)
			}
		}
		if n := count(t, s.shards["a"], "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'invoices%'"); n != 0 {
			t.Errorf("%d: %d tables were made", id, n)
		}
		found, err := j.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(fmt.Sprint(found), string(migrate.NoNewID)) {
			t.Errorf("%d: Inspect found %v", id, found)
		}
	}
}

func TestAPlanSaysWhatBecomesOfIDs(t *testing.T) {
	digests := map[string]string{}
	for name, ids := range modes() {
		s := newSales(t, ids(), 3)
		p, err := s.job(t).Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if other, met := digests[p.Digest]; met {
			t.Errorf("%s and %s have one digest", name, other)
		}
		digests[p.Digest] = name
		if lines := p.Tables[1]; !strings.HasPrefix(s.ids.String(), lines.IDs) || lines.Via != "invoice_id" || lines.ShardBy != "customer_id" {
			t.Errorf("%s: %+v", name, lines)
		}
	}
}

func TestResolveOldAnswersForReferencesElsewhere(t *testing.T) {
	for name, ids := range modes() {
		s := newSales(t, ids(), 20)
		j := s.job(t)
		mustRun(t, j)
		newID := s.newID(t)
		id, err := j.ResolveOld(t.Context(), "lines", 7)
		if err != nil || id != newID(1, 7) {
			t.Errorf("%s: line 7 became %d, not %d (%v)", name, id, newID(1, 7), err)
		}
		if _, err := j.Cutover(t.Context(), longPause); err != nil {
			t.Fatal(err)
		}
		if err := j.Finalize(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after, err := j.ResolveOld(t.Context(), "lines", 7); err != nil || after != id {
			t.Errorf("%s: after Finalize it is %d (%v)", name, after, err)
		}
		if _, err := j.ResolveOld(t.Context(), "nowhere", 7); err == nil {
			t.Errorf("%s: a table of no job was resolved", name)
		}
		if name == "map table" {
			if _, err := j.ResolveOld(t.Context(), "lines", 7_000); !errors.Is(err, migrate.ErrNoID) {
				t.Errorf("got %v", err)
			}
		}
	}
}

func TestAbortForgetsTheMap(t *testing.T) {
	s := newSales(t, migrate.MapTable(counter(1000)), 20)
	j := s.job(t)
	mustRun(t, j)
	if err := j.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s.source, "SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'shardid_ids%'"); n != 0 {
		t.Error("the map table is still there")
	}
	mustRun(t, j)
	s.compare(t, "", "")
}

// Without a foreign key, a parent may go before its children, or come after them.
func TestAChildWaitsForItsParent(t *testing.T) {
	s := newSales(t, migrate.Affine(10, 3), 20)
	exec(t, s.source, "INSERT INTO lines (id, invoice_id, what) VALUES (900, 800, 'early')")
	j := s.job(t)
	mustRun(t, j)
	if v := verify(t, j); v.Unsettled != 1 || v.Requeued != 0 {
		t.Errorf("%+v", v)
	}
	var row *migrate.RowError
	if _, err := j.Cutover(t.Context(), longPause); !errors.As(err, &row) || row.ID != 900 || !errors.Is(err, migrate.ErrNotReady) {
		t.Errorf("got %v", err)
	}
	exec(t, s.source, "INSERT INTO invoices (id, customer_id) VALUES (800, 2)")
	exec(t, s.source, "DELETE FROM invoices WHERE id = 5")
	exec(t, s.source, "INSERT INTO invoices (id, customer_id) VALUES (5, 11)")
	exec(t, s.source, "INSERT OR REPLACE INTO invoices (id, customer_id) VALUES (6, 12)")
	mustRun(t, j)
	if _, err := j.Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	s.compare(t, "_old", "")
}

// An order made before ids carried a slot is found by its user alone.
func TestBelowTheBoundaryAKeptIDLeadsNowhere(t *testing.T) {
	const boundary = 1000
	s := newShop(t, 300)
	withBoundary := func(from int64) func(*migrate.Config) {
		return func(c *migrate.Config) {
			c.Tables[0].Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(2), From: from}}
		}
	}
	exec(t, s.source, fmt.Sprintf("INSERT INTO orders (id, user_id) VALUES (%d, 2)", boundary+2)) // made with the slot of its user
	j := s.job(t, "user_id", withBoundary(boundary))
	mustRun(t, j)
	if _, err := j.Cutover(t.Context(), longPause); err != nil {
		t.Fatal(err)
	}
	cfg := s.config(t, "user_id")
	withBoundary(boundary)(&cfg)
	router, err := sharding.New(s.shards, sharding.Tables(cfg.Tables[0].Table))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := router.TargetBy("orders", "id", 299); !errors.Is(err, sharding.ErrMissingKey) {
		t.Errorf("an id below the boundary: %v", err)
	}
	at, err := router.TargetBy("orders", "id", boundary+2)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, s.shards[at.DB], "SELECT COUNT(*) FROM "+at.Table+" WHERE id = ?", boundary+2); n != 1 {
		t.Errorf("%d rows at %s", n, at)
	}
}

func TestAKeptIDAboveTheBoundaryWithoutASlotEndsTheRun(t *testing.T) {
	s := newShop(t, 300)
	j := s.job(t, "user_id", func(c *migrate.Config) {
		c.Tables[0].Also = []sharding.Alt{{Column: "id", Rule: sharding.Low(2), From: 200}}
	})
	var row *migrate.RowError
	if err := j.Run(t.Context()); !errors.As(err, &row) || row.ID < 200 || !errors.Is(err, migrate.ErrNotReady) || !strings.Contains(err.Error(), "Also.From") {
		t.Errorf("got %v", err)
	}
}
