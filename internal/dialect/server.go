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

// Kind is which product a server is. Its text is the product's own name.
type Kind string

// The kinds. TiDB and Vitess speak MySQL's protocol and most of its SQL, and are
// told apart because they have no triggers or no locks on tables.
const (
	KindMySQL      Kind = "MySQL" // Percona Server and the clouds' MySQL, too
	KindMariaDB    Kind = "MariaDB"
	KindTiDB       Kind = "TiDB"
	KindVitess     Kind = "Vitess" // vtgate
	KindPostgreSQL Kind = "PostgreSQL"
	KindSQLite     Kind = "SQLite"
)

// Cluster is by which means a server commits together with others. What such a
// cluster has acknowledged, all its members have, or will have before they answer.
type Cluster string

// The clusters.
const (
	NoCluster        Cluster = ""
	Galera           Cluster = "Galera" // MariaDB Galera Cluster, Percona XtraDB Cluster
	GroupReplication Cluster = "Group Replication"
)

// Server is a database as found by Detect or Identify. Two that were found alike
// are equal.
type Server struct {
	Dialect
	Kind    Kind
	Version string // as the server says it, "10.11.6-MariaDB" say

	// What only Identify asks.

	Cluster          Cluster
	SeveralPrimaries bool   // all members of the replication group take writes
	Proxy            string // the proxy between here and the server, where it says so: "ProxySQL"
}

// ErrUnknown: the database is none of the supported ones.
var ErrUnknown = errors.New("unknown database; supported are MySQL, MariaDB, PostgreSQL and SQLite")

// Querier is the part of *sql.DB, *sql.Conn and *sql.Tx that asks a server what it
// is.
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
	defer func() { _ = rows.Close() }() // after an error, which tells all
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

// askVersion has a name for its column because ProxySQL 3.0.4 and newer answers the
// bare question with a version of its own.
const askVersion = "SELECT VERSION() AS version"

// Detect asks the database what it is, with at most two queries. The driver's
// type is no guide, as instrumented drivers wrap it.
func Detect(ctx context.Context, db Querier) (Server, error) {
	var v string
	first := db.QueryRowContext(ctx, askVersion).Scan(&v)
	if first == nil {
		return byVersion(v)
	}
	if FaultOf(first) == Unprepared { // which only PostgreSQL says
		return Server{}, fmt.Errorf("detect the database: %w", Advised(first))
	}
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&v); err != nil {
		// Of the two errors the first tells why a MySQL server did not answer.
		if err.Error() != first.Error() {
			first = errors.Join(first, err)
		}
		return Server{}, fmt.Errorf("detect the database: %w", first)
	}
	return Server{Dialect: SQLite{}, Kind: KindSQLite, Version: v}, nil
}

// byVersion tells the databases that answer VERSION() apart.
func byVersion(v string) (Server, error) {
	if version, ok := strings.CutPrefix(v, "PostgreSQL "); ok {
		version, _, _ = strings.Cut(version, " on ") // the machine follows
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

// proxies are the proxies that show themselves in the texts by which servers tell
// their version. One that passes the server's own texts on cannot be told from it.
var proxies = []string{"ProxySQL", "MaxScale", "ShardingSphere-Proxy"}

func proxyIn(text string) string {
	for _, name := range proxies {
		if strings.Contains(strings.ToLower(text), strings.ToLower(name)) {
			return name
		}
	}
	return ""
}

// AtLeast reports whether the version is major.minor or newer. A version that does
// not begin with two numbers is older than any.
func (s Server) AtLeast(major, minor int) bool {
	var is [2]int
	if n, _ := fmt.Sscanf(s.Version, "%d.%d", &is[0], &is[1]); n < 2 {
		return false
	}
	return cmp.Or(cmp.Compare(is[0], major), cmp.Compare(is[1], minor)) >= 0
}
