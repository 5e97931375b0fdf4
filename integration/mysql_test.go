package integration_test

import (
	"database/sql"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/gormsuite"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/workerid"
)

// MySQL knows no RETURNING, and hands out the numbers of a batch as it likes.
func TestGormFillingOnMySQL(t *testing.T) {
	gormsuite.Run(t, fillSuite(server.ShareMySQL(t), "mysql", gormsuite.Single, func(db *sql.DB) gorm.Dialector {
		return mysql.New(mysql.Config{Conn: db})
	}))
}

func mySQL(m *server.MySQL) database {
	return func(t *testing.T) *sql.DB { return m.Open(t, "app") }
}

func TestSegmentsKeepTheContractOnMySQL(t *testing.T) {
	open := mySQL(server.ShareMySQL(t))
	t.Run("source", func(t *testing.T) {
		keygentest.Source(t, func(t *testing.T) keygen.Source {
			_, store := open.store(t)
			return store.Tag("orders")
		})
	})
	t.Run("generator", func(t *testing.T) {
		_, store := open.store(t)
		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return openSegment(t, store, 5000) })
	})
}

func TestLeasesKeepTheContractOnMySQL(t *testing.T) {
	open := mySQL(server.ShareMySQL(t))
	keygentest.Ledger(t, func(t *testing.T) workerid.Ledger {
		_, store := open.store(t)
		return store.Leases()
	})
}
