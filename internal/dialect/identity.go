// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Identify calls Detect, and also asks MySQL and MariaDB whether the server is a member of a
// cluster, and whether a proxy in front of it identifies itself. It needs no right.
//
// A server counts as a member of Group Replication if it has a group name, and of Galera if
// wsrep_on is set.
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
	// ProxySQL answers this query itself if it has exactly this text, with which MySQL's own client
	// sends it.
	var comment string
	if err := db.QueryRowContext(ctx, "select @@version_comment limit 1").Scan(&comment); err != nil {
		return Server{}, fmt.Errorf("ask the server for its version_comment: %w", err)
	}
	if name := proxyIn(comment); name != "" {
		s.Proxy = name
	}
	return s, nil
}

// variables reads global settings of MySQL or MariaDB. The result lacks settings that the server
// does not have.
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
// MySQL has a uuid. MariaDB has none, and its server_uid consists of the network address and the
// port, which servers in containers may share; but servers that replicate have different values of
// server_id. All copies of a PostgreSQL database have the same system identifier, and each
// promotion begins a new timeline. An SQLite file has no fail-over.
const mysqlNode = `@@server_uuid`

var nodes = map[Kind]string{
	KindMariaDB:    `CONCAT_WS(':', @@server_id, @@port, @@hostname)`,
	KindPostgreSQL: `(SELECT system_identifier FROM pg_control_system()) || ':' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`,
	KindSQLite:     `'sqlite'`,
}

// NodeExpr returns an SQL expression whose value differs between servers, copies of one included,
// and does not change when a server restarts. On a PostgreSQL standby it fails.
func (s Server) NodeExpr() string { return cmp.Or(nodes[s.Kind], mysqlNode) }

// The identity of a cluster is the identity of its state: Galera's since it was first bootstrapped,
// or the name of a replication group. It is empty while a Galera member is alone.
const (
	galeraState = `(SELECT VARIABLE_VALUE FROM %s.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_state_uuid' AND VARIABLE_VALUE NOT IN ('', '00000000-0000-0000-0000-000000000000'))`
	groupName   = `NULLIF(@@group_replication_group_name, '')`
)

// IdentityExpr returns an SQL expression for the identity of the unit that stores acknowledged
// writes: the cluster of a server that Identify has found in one, otherwise the server. When it
// changes, acknowledged writes may be lost. Reading it needs no right. A cluster that was
// bootstrapped again from a member that had fallen behind keeps its identity.
func (s Server) IdentityExpr() string {
	state := groupName
	switch {
	case s.Cluster == NoCluster:
		return s.NodeExpr()
	case s.Cluster == Galera && s.Kind == KindMariaDB:
		state = fmt.Sprintf(galeraState, "information_schema")
	case s.Cluster == Galera:
		state = fmt.Sprintf(galeraState, "performance_schema")
	}
	return "COALESCE(" + state + ", " + s.NodeExpr() + ")"
}

// Mode is the part of a session's sql_mode on which the meaning of a statement's text, or the
// refusal of wrong values, depends.
type Mode struct {
	NoBackslashEscapes bool // '\' in a text is an ordinary character
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
