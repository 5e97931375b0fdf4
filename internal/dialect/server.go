// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Kind is the product of a server. Its text is the product's own name.
type Kind string

// The kinds. TiDB and Vitess use MySQL's protocol and most of its SQL, but have no triggers or no
// table locks.
const (
	KindMySQL      Kind = "MySQL" // includes Percona Server and the clouds' MySQL
	KindMariaDB    Kind = "MariaDB"
	KindTiDB       Kind = "TiDB"
	KindVitess     Kind = "Vitess" // vtgate
	KindPostgreSQL Kind = "PostgreSQL"
	KindSQLite     Kind = "SQLite"
)

// Cluster is the kind of a cluster of servers. All its members have every write that it has
// acknowledged, or will have it before they answer.
type Cluster string

// The clusters.
const (
	NoCluster        Cluster = ""
	Galera           Cluster = "Galera" // MariaDB Galera Cluster, Percona XtraDB Cluster
	GroupReplication Cluster = "Group Replication"
)

// Server is a database that Detect or Identify has found. Servers with equal properties are equal.
type Server struct {
	Dialect
	Kind    Kind
	Version string // in the server's form, for example "10.11.6-MariaDB"

	// Only Identify sets the following fields.

	Cluster          Cluster
	SeveralPrimaries bool   // all members of the replication group accept writes
	Proxy            string // the proxy in front of the server, if it identifies itself: "ProxySQL"
}

// ErrUnknown: the database is not supported.
var ErrUnknown = errors.New("unknown database; supported are MySQL, MariaDB, PostgreSQL and SQLite")

// Querier is the part of *sql.DB, *sql.Conn and *sql.Tx that queries a server's properties.
type Querier interface {
	Lister
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Lister is the part that Each needs.
type Lister interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Each calls scan with each row of a query.
func Each(ctx context.Context, on Lister, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // closed after the error is known
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// askVersion names its column because ProxySQL 3.0.4 and newer answers the query without a name
// with its own version.
const askVersion = "SELECT VERSION() AS version"

// Detect finds the product of the database with at most two queries. It does not use the driver's
// type, because instrumented drivers wrap it.
func Detect(ctx context.Context, db Querier) (Server, error) {
	var v string
	first := db.QueryRowContext(ctx, askVersion).Scan(&v)
	if first == nil {
		return byVersion(v)
	}
	if FaultOf(first) == Unprepared { // only PostgreSQL returns this error
		return Server{}, fmt.Errorf("detect the database: %w", Advised(first))
	}
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&v); err != nil {
		// The first of the two errors says why a MySQL server did not answer.
		if err.Error() != first.Error() {
			first = errors.Join(first, err)
		}
		return Server{}, fmt.Errorf("detect the database: %w", first)
	}
	return Server{Dialect: SQLite{}, Kind: KindSQLite, Version: v}, nil
}

// byVersion distinguishes the databases that answer VERSION().
func byVersion(v string) (Server, error) {
	if version, ok := strings.CutPrefix(v, "PostgreSQL "); ok {
		version, _, _ = strings.Cut(version, " on ") // the machine's architecture follows
		return Server{Dialect: Postgres{}, Kind: KindPostgreSQL, Version: version}, nil
	}
	if v == "" || v[0] < '0' || v[0] > '9' {
		return Server{}, fmt.Errorf("%w, not %s", ErrUnknown, v)
	}
	s := Server{Dialect: MySQL{}, Kind: KindMySQL, Version: v, Proxy: proxyIn(v)}
	for _, k := range []Kind{KindMariaDB, KindTiDB, KindVitess} {
		if strings.Contains(v, string(k)) {
			s.Kind = k
		}
	}
	return s, nil
}

// proxies are the proxies that identify themselves in version texts. A proxy that passes the
// server's own texts on cannot be recognised.
var proxies = []string{"ProxySQL", "MaxScale", "ShardingSphere-Proxy"}

func proxyIn(text string) string {
	for _, name := range proxies {
		if strings.Contains(strings.ToLower(text), strings.ToLower(name)) {
			return name
		}
	}
	return ""
}

// AtLeast reports whether the version is major.minor or newer. A version that does not begin with
// two numbers is older than any other.
func (s Server) AtLeast(major, minor int) bool {
	var is [2]int
	if n, _ := fmt.Sscanf(s.Version, "%d.%d", &is[0], &is[1]); n < 2 {
		return false
	}
	return cmp.Or(cmp.Compare(is[0], major), cmp.Compare(is[1], minor)) >= 0
}
