// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"
	"testing"
)

func TestAtLeastComparesTheNumbersAtTheStartOfAVersion(t *testing.T) {
	for version, want := range map[string]bool{
		"10.6.0-MariaDB": true, "10.11.6-MariaDB": true, "11.4.2-MariaDB": true, "10.6": true,
		"10.5.29-MariaDB": false, "8.0.36": false, "10": false, "unknown": false, "": false,
	} {
		if got := (Server{Version: version}).AtLeast(10, 6); got != want {
			t.Errorf("%q is at least 10.6: %v", version, got)
		}
	}
}

func TestAServerInAClusterHasTheIdentityOfTheCluster(t *testing.T) {
	alone := Server{Dialect: MySQL{}, Kind: KindMySQL}
	for name, is := range map[string]struct {
		server Server
		want   []string
	}{
		"MySQL":                  {alone, []string{"@@server_uuid"}},
		"Group Replication":      {Server{Dialect: MySQL{}, Kind: KindMySQL, Cluster: GroupReplication}, []string{"@@group_replication_group_name", "@@server_uuid"}},
		"Percona XtraDB Cluster": {Server{Dialect: MySQL{}, Kind: KindMySQL, Cluster: Galera}, []string{"performance_schema.GLOBAL_STATUS", "@@server_uuid"}},
		"MariaDB":                {Server{Dialect: MySQL{}, Kind: KindMariaDB}, []string{"@@server_id"}},
		"Galera":                 {Server{Dialect: MySQL{}, Kind: KindMariaDB, Cluster: Galera}, []string{"information_schema.GLOBAL_STATUS", "@@server_id"}},
	} {
		rest := is.server.IdentityExpr()
		for _, part := range is.want { // in this order
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s: %s lacks %s", name, is.server.IdentityExpr(), part)
			}
			rest = after
		}
	}
	if alone.IdentityExpr() != alone.NodeExpr() {
		t.Errorf("a server alone is %s, not %s", alone.IdentityExpr(), alone.NodeExpr())
	}
}

func TestAProxyIsRecognisedByItsVersionText(t *testing.T) {
	for text, want := range map[string]string{
		"(ProxySQL)": "ProxySQL", "5.7.22-ShardingSphere-Proxy 5.5.2": "ShardingSphere-Proxy", "Debian 12": "", "MySQL Community Server - GPL": "",
	} {
		if got := proxyIn(text); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestParseModeIgnoresCase(t *testing.T) {
	if got := ParseMode("ansi_quotes,STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT"); got != (Mode{true, true, true, true}) {
		t.Errorf("%+v", got)
	}
	if got := ParseMode("ONLY_FULL_GROUP_BY,NO_ZERO_DATE"); got != (Mode{}) {
		t.Errorf("%+v", got)
	}
	if got := ParseMode(""); got != (Mode{}) {
		t.Errorf("%+v", got)
	}
}
