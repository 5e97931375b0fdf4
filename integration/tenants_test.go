// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jmoiron/sqlx"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sqlxhook"
)

// tenantAccount is sharded by its tenant's name, which compares bytes as HashText asks.
type tenantAccount struct {
	Tenant string `gorm:"primaryKey" db:"tenant"`
	Note   string `db:"note"`
}

func (tenantAccount) TableName() string { return "accounts" }

const createAccounts = "CREATE TABLE %s (tenant VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, note VARCHAR(40) NOT NULL) ENGINE=InnoDB"

// tenants are equal in pairs under collations that ignore case, accents or spaces.
var tenants = []string{
	"alice", "Alice", "ALICE", "alíce", "ali\u0301ce", "alice ", "alice  ", " alice", "alice\t", "", " ", "ß", "ss", "SS", "ı", "i", "I", "İ",
	"0", "00", "0.0", "1e0", "1", "٣", "a\x00", "a", "'a'", "a\\", "日本", "日本 ", "K", "\u212a",
}

// textShop is accounts on four tables of two databases, and on one table.
type textShop struct {
	*sqlxhook.Hook
	db             *sqlx.DB
	sharded, whole *gorm.DB
	router         *sharding.Router
}

func newTextShop(t *testing.T, s database.Server) *textShop {
	t.Helper()
	dbs := sharding.DBs{"east": s.Open(t, "east"), "west": s.Open(t, "west")}
	home := s.Open(t, "home")
	m, err := sharding.Spread([]string{"east", "west"}, 4, "accounts_%d")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range m.Targets() {
		database.Exec(t, dbs[target.DB], fmt.Sprintf(createAccounts, target.Table))
	}
	database.Exec(t, home, fmt.Sprintf(createAccounts, "accounts"))
	shop := &textShop{sharded: database.OpenGORM(t, s.Open(t, "app"), true), whole: database.OpenGORM(t, home, true)}
	shop.router, err = sharding.New(dbs, sharding.Table{Name: "accounts", Key: "tenant", Rule: sharding.HashText(16), Map: m}, sharding.Transactions(sharding.BestEffort))
	if err != nil {
		t.Fatal(err)
	}
	if shop.Hook, err = sqlxhook.New(sqlxhook.Config{Router: shop.router}); err != nil {
		t.Fatal(err)
	}
	shop.db = database.RoutedSqlx(t, shop.router, home)
	if err := shop.sharded.Use(gormplugin.New(gormplugin.Config{Router: shop.router})); err != nil {
		t.Fatal(err)
	}
	return shop
}

// change makes a random statement on a tenant, or on several, and says what came
// of it.
func (*textShop) change(r *rand.Rand, db *gorm.DB) (string, error) {
	row := tenantAccount{tenants[r.IntN(len(tenants))], fmt.Sprint("n", r.IntN(100))}
	other := tenants[r.IntN(len(tenants))]
	var list []tenantAccount
	var tx *gorm.DB
	switch r.IntN(8) {
	case 0, 1:
		tx = db.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	case 2:
		tx = db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row)
	case 3:
		tx = db.Model(&tenantAccount{}).Where("tenant IN ?", []string{row.Tenant, other}).Update("note", row.Note)
	case 4:
		tx = db.Where("tenant = ?", row.Tenant).Delete(&tenantAccount{})
	case 5:
		tx = db.Where(map[string]any{"tenant": row.Tenant}).Find(&list)
	case 6:
		tx = db.Where("tenant = ? OR tenant = ?", row.Tenant, other).Find(&list)
		if len(list) == 2 && list[0].Tenant > list[1].Tenant {
			list[0], list[1] = list[1], list[0]
		}
	default:
		tx = db.Where("tenant = ? AND note <> ?", row.Tenant, row.Note).Find(&list)
	}
	return fmt.Sprintf("%q", list), tx.Error
}

// all are the accounts by tenant, wherever they are; a tenant that is stored twice
// fails the test.
func (s *textShop) all(t *testing.T, db *gorm.DB) map[string]string {
	t.Helper()
	var list []tenantAccount
	if err := db.WithContext(sharding.AllShards(t.Context())).Find(&list).Error; err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, a := range list {
		if _, twice := found[a.Tenant]; twice {
			t.Errorf("%q is stored twice", a.Tenant)
		}
		found[a.Tenant] = a.Note
	}
	return found
}

// TestTextKeysAreThoseOfOneTableOrRefused runs random statements on shards and on
// one table of the same server, with keys that some collations regard as equal.
func TestTextKeysAreThoseOfOneTableOrRefused(t *testing.T) {
	database.OnEachMySQL(t, func(t *testing.T, server database.Server) {
		s := newTextShop(t, server)
		refused, done := 0, 0
		for seed := range uint64(600) {
			got, err := s.change(rand.New(rand.NewPCG(seed, 1)), s.sharded)
			if errors.Is(err, sharding.ErrKeyType) || errors.Is(err, sharding.ErrMissingKey) { // it ends with a space, or is empty
				refused++
				continue
			}
			want, failed := s.change(rand.New(rand.NewPCG(seed, 1)), s.whole)
			if err != nil || failed != nil || got != want {
				t.Fatalf("statement %d: %s, %v; one table: %s, %v", seed, got, err, want, failed)
			}
			done++
		}
		if got, want := fmt.Sprint(s.all(t, s.sharded)), fmt.Sprint(s.all(t, s.whole)); got != want {
			t.Errorf("stored:\n\t%q\nnot\n\t%q", got, want)
		}
		if refused == 0 || done < 300 {
			t.Errorf("%d were done and %d refused", done, refused)
		}
		s.bySqlx(t)
	})
}

// bySqlx writes and reads each tenant through the routed database.
func (s *textShop) bySqlx(t *testing.T) {
	t.Helper()
	for _, name := range tenants {
		if name != "" && name[len(name)-1] == ' ' {
			if _, err := s.Insert(t.Context(), s.db, "accounts", &tenantAccount{Tenant: name}); !errors.Is(err, sharding.ErrKeyType) {
				t.Errorf("Insert %q: %v", name, err)
			}
			continue
		}
		s.mine(t.Context(), t, name)
	}
}

func (s *textShop) mine(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if _, err := s.db.ExecContext(ctx, "DELETE FROM accounts WHERE tenant = ?", name); err != nil {
		t.Fatal(err)
	}
	var gone tenantAccount
	if err := s.db.GetContext(ctx, &gone, "SELECT * FROM accounts WHERE tenant = ?", name); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("%q after its deletion: %q, %v", name, gone, err)
	}
	if _, err := s.Insert(ctx, s.db, "accounts", &tenantAccount{name, "mine"}); err != nil {
		t.Errorf("%q: %v", name, err)
	}
	var list []tenantAccount
	err := s.db.SelectContext(ctx, &list, "SELECT * FROM accounts WHERE tenant = ?", name)
	if err != nil || len(list) != 1 || list[0] != (tenantAccount{name, "mine"}) {
		t.Errorf("%q is found as %q, %v", name, list, err)
	}
}
