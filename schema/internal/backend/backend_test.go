// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/dialect"
)

func TestServersThatNoMigrationCanReadFromAreRefusedWithTheReason(t *testing.T) {
	for _, c := range []struct {
		server dialect.Server
		says   string
	}{
		{dialect.Server{Dialect: dialect.MySQL{}, Kind: dialect.KindTiDB, Version: "8.0.11-TiDB-v8.5.2"}, "no triggers"},
		{dialect.Server{Dialect: dialect.MySQL{}, Kind: dialect.KindVitess}, "Vitess"},
		{dialect.Server{Dialect: dialect.MySQL{}, Kind: dialect.KindMySQL, Proxy: "ProxySQL"}, "through ProxySQL"},
		{dialect.Server{Dialect: dialect.Postgres{}, Kind: dialect.KindPostgreSQL, Version: "14.2"}, "15 or newer"},
	} {
		if _, err := forServer(c.server); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.server.Kind, err)
		}
	}
}

func TestALostConnectionMayPassWhateverTheDriverSays(t *testing.T) {
	for _, says := range []string{"invalid connection", "busy buffer", "commands out of sync. You can't run this command now"} {
		if !Transient(errors.New(says)) {
			t.Errorf("%s: a runner would end", says)
		}
	}
}
