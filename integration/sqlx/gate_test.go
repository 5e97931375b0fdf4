package sqlx_test

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/gatesuite"
	"github.com/shardid/shardid/sharding"
)

// sqlxHarness moves its tickets, by user, to two tables on their own server and
// two on another one.
func sqlxHarness(t *testing.T, near, far interface {
	Open(tb testing.TB, database string) *sql.DB
}) *gatesuite.Harness {
	t.Helper()
	dbs := sharding.DBs{"source": near.Open(t, "tickets"), "a": near.Open(t, "tickets_a"), "b": far.Open(t, "tickets_b")}
	create := "CREATE TABLE tickets (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, user_id BIGINT NOT NULL, note VARCHAR(500) NOT NULL)"
	return gatesuite.New(t, "mysql", dbs, create, "user_id")
}

func TestSqlxWritersSeeNothingOfAMigrationOnMariaDB(t *testing.T) {
	sqlxHarness(t, server.RunMariaDB(t), server.RunMariaDB(t)).ThereAndBack(t, 4)
}

func TestSqlxWritersSeeNothingOfAMigrationOnMySQL(t *testing.T) {
	one := server.RunMySQL(t)
	sqlxHarness(t, one, one).ThereAndBack(t, 4)
}
