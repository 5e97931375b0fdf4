// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Identify is Detect, and also asks MySQL and MariaDB whether the server commits
// together with others, and whether a proxy says that it stands in between. It
// needs no right.
//
// A server counts as a member of Group Replication when it has the name of a group,
// and of Galera when wsrep_on is set.
func Identify(ctx context.Context, db Querier) (Server, error) {
	s, err := Detect(ctx, db)
	if err != nil || s.Name() != (MySQL{}).Name() {
		return s, err
	}
	v, err := variables(ctx, db, "wsrep_on", "group_replication_group_name", "group_replication_single_primary_mode")
	if err != nil {
		return Server{}, err
	}
	switch {
	case v["wsrep_on"] == "ON":
		s.Cluster = Galera
	case v["group_replication_group_name"] != "":
		s.Cluster = GroupReplication
		s.SeveralPrimaries = v["group_replication_single_primary_mode"] == "OFF"
	}
	// ProxySQL answers this question itself when it has just these letters, in which
	// MySQL's own client asks it.
	var comment string
	if err := db.QueryRowContext(ctx, "select @@version_comment limit 1").Scan(&comment); err != nil {
		return Server{}, fmt.Errorf("ask the server for its version_comment: %w", err)
	}
	if name := proxyIn(comment); name != "" {
		s.Proxy = name
	}
	return s, nil
}

// variables reads global settings of MySQL or MariaDB; one that the server does not
// have is not in the answer.
func variables(ctx context.Context, db Querier, names ...string) (map[string]string, error) {
	values := map[string]string{}
	err := Each(ctx, db, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		values[strings.ToLower(name)] = value
		return err
	}, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "', '")+"')")
	if err != nil {
		return nil, fmt.Errorf("ask the server for its settings: %w", err)
	}
	return values, nil
}

// The identity of one server, as an SQL expression.
//
// MySQL is known by its uuid. MariaDB has none, and its server_uid is made of
// network address and port, which servers in containers share; but among servers
// that replicate, server_id differs. All copies of a PostgreSQL database have
// the same system identifier, and each promotion begins a new timeline. An
// SQLite file does not fail over.
const (
	mysqlNode    = `@@server_uuid`
	mariadbNode  = `CONCAT_WS(':', @@server_id, @@port, @@hostname)`
	postgresNode = `(SELECT system_identifier FROM pg_control_system()) || ':' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`
	sqliteNode   = `'sqlite'`
)

// NodeExpr returns an SQL expression that is another text on each server, copies of
// one included, and stays the same when a server starts again. On a PostgreSQL
// standby it fails.
func (s Server) NodeExpr() string {
	switch s.Kind {
	case KindPostgreSQL:
		return postgresNode
	case KindSQLite:
		return sqliteNode
	case KindMariaDB:
		return mariadbNode
	default:
		return mysqlNode
	}
}

// The identity of a cluster is that of its state: Galera's since it was first
// bootstrapped, the name of a replication group. It is nothing while a member of
// Galera is alone.
const (
	galeraState  = `(SELECT VARIABLE_VALUE FROM %s.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid' AND VARIABLE_VALUE NOT IN ('', '00000000-0000-0000-0000-000000000000'))`
	groupName    = `NULLIF(@@group_replication_group_name, '')`
	inMariaDB    = `information_schema`
	inMySQL      = `performance_schema`
	clusterFirst = `COALESCE(%s, %s)`
)

// IdentityExpr returns an SQL expression for the identity of that which must not
// forget what it has acknowledged: the cluster of a server that Identify has found
// in one, otherwise the server. When it changes, what was acknowledged before may
// be lost. It can be read without any right. A cluster that was bootstrapped anew
// from a member that had fallen behind keeps its identity.
func (s Server) IdentityExpr() string {
	switch {
	case s.Cluster == GroupReplication:
		return fmt.Sprintf(clusterFirst, groupName, s.NodeExpr())
	case s.Cluster == Galera && s.Kind == KindMariaDB:
		return fmt.Sprintf(clusterFirst, fmt.Sprintf(galeraState, inMariaDB), s.NodeExpr())
	case s.Cluster == Galera:
		return fmt.Sprintf(clusterFirst, fmt.Sprintf(galeraState, inMySQL), s.NodeExpr())
	}
	return s.NodeExpr()
}

// Mode is what of a session's sql_mode changes the meaning of a statement's text, or
// whether wrong values are refused.
type Mode struct {
	NoBackslashEscapes bool // '\' in a text is a character like others
	ANSIQuotes         bool // "x" is a name, not a text
	PipesAsConcat      bool // a || b joins texts
	Strict             bool // values that do not fit are errors
}

// ParseMode reads a value of sql_mode.
func ParseMode(sqlMode string) Mode {
	modes := strings.Split(strings.ToUpper(sqlMode), ",")
	return Mode{
		NoBackslashEscapes: slices.Contains(modes, "NO_BACKSLASH_ESCAPES"),
		ANSIQuotes:         slices.Contains(modes, "ANSI_QUOTES"),
		PipesAsConcat:      slices.Contains(modes, "PIPES_AS_CONCAT"),
		Strict:             slices.Contains(modes, "STRICT_TRANS_TABLES") || slices.Contains(modes, "STRICT_ALL_TABLES"),
	}
}
