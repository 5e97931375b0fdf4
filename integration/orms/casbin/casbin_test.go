// SPDX-License-Identifier: Apache-2.0

package casbin

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/casbin/casbin/v3"
	"github.com/casbin/casbin/v3/model"
	gormadapter "github.com/casbin/gorm-adapter/v3"
	"github.com/glebarez/sqlite"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/shardid/shardid/gormplugin"
	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
)

// rbac is casbin's model of roles.
const rbac = `
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act
`

// order is a sharded model beside casbin's table, which is not sharded.
type order struct {
	ID     int64 `gorm:"primaryKey;autoIncrement:false" keygen:""`
	UserID int64
}

func (order) TableName() string { return "orders" }

// onEachDatabase runs a test on SQLite, MariaDB and MySQL, with the database as GORM
// alone has it, and with a router.
func onEachDatabase(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	dir := t.TempDir()
	maria, my := server.ShareMariaDB(t), server.ShareMySQL(t)
	for name, dialector := range map[string]func(name string) gorm.Dialector{
		"SQLite": func(name string) gorm.Dialector {
			return sqlite.Open(filepath.Join(dir, name) + "?_pragma=busy_timeout(10000)")
		},
		"MariaDB": func(name string) gorm.Dialector { return mysql.New(mysql.Config{Conn: maria.Open(t, name)}) },
		"MySQL":   func(name string) gorm.Dialector { return mysql.New(mysql.Config{Conn: my.Open(t, name)}) },
	} {
		t.Run(name+", routed", func(t *testing.T) {
			db := opened(t, dialector("routed"))
			route(t, db)
			test(t, db)
		})
		t.Run(name, func(t *testing.T) { test(t, opened(t, dialector("alone"))) })
	}
}

func opened(t *testing.T, dialector gorm.Dialector) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return db
}

// route makes orders a sharded table of db.
func route(t *testing.T, db *gorm.DB) {
	t.Helper()
	home, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	orders, err := sharding.Spread([]string{"home"}, 4, "orders_%d")
	if err != nil {
		t.Fatal(err)
	}
	router, err := sharding.New(sharding.DBs{"home": home}, sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Low(2), Map: orders})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormplugin.New(gormplugin.Config{Generators: keygen.Set{Default: keygen.Counting(1, 1)}, Router: router})); err != nil {
		t.Fatal(err)
	}
	if err := gormplugin.Migrate(t.Context(), db, &order{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Create(&[]order{{UserID: 1}, {UserID: 2}}).Error; err != nil {
		t.Fatal(err)
	}
}

func newEnforcer(t *testing.T, db *gorm.DB) *casbin.Enforcer {
	t.Helper()
	adapter, err := gormadapter.NewAdapterByDB(db)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.NewModelFromString(rbac)
	if err != nil {
		t.Fatal(err)
	}
	e, err := casbin.NewEnforcer(m, adapter)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// stored are the policies that another process would load.
func stored(t *testing.T, db *gorm.DB) []string {
	t.Helper()
	all, err := newEnforcer(t, db).GetPolicy()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range all {
		texts = append(texts, strings.Join(p, " "))
	}
	slices.Sort(texts)
	return texts
}

func TestPoliciesAreStoredBesideShardedTables(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		e := newEnforcer(t, db)
		for _, change := range []func() (bool, error){
			func() (bool, error) {
				return e.AddPolicies([][]string{{"clerk", "orders", "read"}, {"clerk", "orders", "write"}, {"guest", "orders", "read"}})
			},
			func() (bool, error) { return e.AddGroupingPolicy("alice", "clerk") },
			func() (bool, error) {
				return e.UpdatePolicy([]string{"clerk", "orders", "write"}, []string{"clerk", "orders", "pay"})
			},
			func() (bool, error) { return e.RemoveFilteredPolicy(0, "guest") },
			func() (bool, error) { return e.Enforce("alice", "orders", "pay") },
		} {
			if ok, err := change(); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		if err := e.SavePolicy(); err != nil {
			t.Error(err)
		}
		if got, want := stored(t, db), []string{"clerk orders pay", "clerk orders read"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// A transaction inside a transaction is what hangs where the pool is no *sql.Tx.
func TestATransactionOfCasbinMayHoldAnother(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		e := newEnforcer(t, db)
		adapter := e.GetAdapter().(*gormadapter.Adapter)
		errInner := errors.New("inner")
		err := adapter.Transaction(e, func(outer casbin.IEnforcer) error {
			if _, err := outer.AddPolicy("clerk", "orders", "read"); err != nil {
				return err
			}
			return adapter.Transaction(outer, func(inner casbin.IEnforcer) error {
				if _, err := inner.AddPolicy("clerk", "orders", "write"); err != nil {
					return err
				}
				return errInner // rolls back to the savepoint; casbin goes on
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := stored(t, db), []string{"clerk orders read"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		errOuter := errors.New("outer")
		err = adapter.Transaction(e, func(outer casbin.IEnforcer) error {
			if _, err := outer.RemovePolicy("clerk", "orders", "read"); err != nil {
				return err
			}
			return errOuter
		})
		if got := stored(t, db); err == nil || len(got) != 1 {
			t.Errorf("rolled back: %q, %v", got, err)
		}
	})
}
