// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding/twophase"
)

// A server hides a table from the catalog of a user who has no right on it. The user's tables of shards are granted.
func TestTheProgramNeedsNoRightOnDecisionsButThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/transactions.md")
	must(t, err)
	grant := regexp.MustCompile(`(?m)^(GRANT .* ON shardid_transactions TO )app;`).FindSubmatch(page)
	if grant == nil {
		t.Fatal("the page names no right")
	}
	serversOf(t, func(t *testing.T, a, _ database.Server) {
		b := openBank(t, a, a)
		must(t, twophase.Create(t.Context(), b.router, nil))
		kind := database.DriverOf(a)
		database.Exec(t, b.east, map[string]string{"pgx": "CREATE ROLE shopper LOGIN", "mysql": "CREATE USER shopper"}[kind])
		var pools []*sql.DB
		for n, owner := range []*sql.DB{b.east, b.west} {
			suffix := []string{"_0", "_1"}[n]
			for _, table := range []string{"accounts", "journal"} {
				database.Exec(t, owner, "GRANT SELECT, INSERT, UPDATE ON "+table+suffix+" TO shopper")
			}
			dsn := a.DSN([]string{"bank_east", "bank_west"}[n])
			db, err := sql.Open(kind, regexp.MustCompile(`\b(root|postgres)@`).ReplaceAllString(dsn, "shopper@"))
			must(t, err)
			t.Cleanup(func() { must(t, db.Close()) })
			pools = append(pools, db)
		}
		limited, err := newBank(t.Context(), pools[0], pools[1])
		must(t, err)
		t.Cleanup(func() { must(t, limited.routed.Close()) })
		if err := limited.transfer(t.Context(), 1, 0, 1); err == nil || !strings.Contains(err.Error(), "GRANT SELECT, INSERT, DELETE") || strings.Contains(err.Error(), "missing") {
			t.Errorf("without the right: %v", err)
		}
		for _, owner := range []*sql.DB{b.east, b.west} {
			database.Exec(t, owner, string(grant[1])+"shopper")
		}
		must(t, limited.transfer(t.Context(), 1, 0, 1))
		if n := database.MustNumber(t, b.east, "SELECT COUNT(*) FROM "+twophase.Table+" WHERE state <> 'identity'"); n != 0 {
			t.Errorf("%d decisions are left", n)
		}
	})
}
