// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

// sharedVar has the ports of the servers that all packages of a run share:
// "mariadb=20123 mysql=20456 postgres=20789".
const sharedVar = "SHARDID_TEST_SERVERS"

// Shared are servers for all packages of a run of the tests.
type Shared struct{ all []*instance }

// StartShared starts one server each of MariaDB, MySQL and PostgreSQL. [ShareMariaDB],
// ShareMySQL and SharePostgres use them in processes that get the environment. The caller
// must Stop them.
//
// ctx bounds the start, not the servers' life.
func StartShared(ctx context.Context) (*Shared, error) {
	my, err := mysqlKind()
	if err != nil {
		return nil, err
	}
	s := &Shared{}
	for _, k := range []kind{mariadb, my, postgres} {
		i, err := k.start(ctx, nil)
		if err != nil {
			s.Stop()
			return nil, err
		}
		s.all = append(s.all, i)
	}
	return s, nil
}

// Environment returns the variables with which a process finds the servers.
func (s *Shared) Environment() string {
	var ports []string
	for _, i := range s.all {
		ports = append(ports, i.kind.name+"="+strconv.Itoa(i.port))
	}
	return sharedVar + "=" + strings.Join(ports, " ")
}

// Stop kills the servers and removes their data.
func (s *Shared) Stop() {
	for _, i := range s.all {
		_ = i.Stop() // the next run removes what is left
	}
}

// ShareMariaDB is [RunMariaDB] for a test that needs only databases of its own
// on a server that other tests use, too. Such a test creates no users, sets no global
// variables, does not kill the server and does not read the state of other databases. Outside of a run
// with shared servers, ShareMariaDB starts a private one.
func ShareMariaDB(tb testing.TB) *MariaDB {
	tb.Helper()
	if i := mariadb.shared(tb); i != nil {
		return &MariaDB{i}
	}
	return RunMariaDB(tb)
}

// ShareMySQL is [ShareMariaDB] for MySQL.
func ShareMySQL(tb testing.TB) *MySQL {
	tb.Helper()
	k, err := mysqlKind()
	if err != nil {
		tb.Fatal(err)
	}
	if i := k.shared(tb); i != nil {
		return &MySQL{i}
	}
	return RunMySQL(tb)
}

// SharePostgres is [ShareMariaDB] for PostgreSQL.
func SharePostgres(tb testing.TB) *Postgres {
	tb.Helper()
	if i := postgres.shared(tb); i != nil {
		return &Postgres{i}
	}
	return RunPostgres(tb)
}

// tenants counts the tenants of this process.
var tenants atomic.Int64

// shared returns a tenant's view of the run's server, or nil when there is none.
func (k kind) shared(tb testing.TB) *instance {
	tb.Helper()
	for text := range strings.FieldsSeq(os.Getenv(sharedVar)) {
		name, number, _ := strings.Cut(text, "=")
		if name != k.name {
			continue
		}
		port, err := strconv.Atoi(number)
		if err != nil {
			tb.Fatalf("%s: %v", sharedVar, err)
		}
		return &instance{kind: k, port: port, tenant: fmt.Sprintf("t%d_%d", os.Getpid(), tenants.Add(1))}
	}
	return nil
}

// named returns the name that a database of the test has on the server.
func (i *instance) named(database string) string {
	if database == "" || i.tenant == "" {
		return database
	}
	return database + "_" + i.tenant
}

// drop removes a tenant's database when the test has ended, because hundreds of databases would
// slow down other tests.
func (i *instance) drop(tb testing.TB, d dialect.Dialect, database, suffix string) {
	tb.Helper()
	if _, known := i.rooms.LoadOrStore(database, true); known || i.tenant == "" {
		return
	}
	tb.Cleanup(func() {
		db, err := i.open("")
		if err != nil {
			tb.Error(err)
			return
		}
		defer func() { _ = db.Close() }()
		if _, err := db.ExecContext(context.Background(), "DROP DATABASE "+d.Quote(i.named(database))+suffix); err != nil {
			tb.Error(err)
		}
	})
}
