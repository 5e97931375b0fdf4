// SPDX-License-Identifier: Apache-2.0

package gormplugin_test

import (
	"database/sql"
	"testing"

	"github.com/shardid/shardid/internal/testkit/shardsuite"
)

func TestStatementsOfEveryKindGoWhereTheirRowsAre(t *testing.T) {
	shardsuite.Run(t, shardsuite.Databases{
		Open: func(t testing.TB) (home, east, west *sql.DB) {
			rec := &recorder{}
			return rec.open(t, "home"), rec.open(t, "east"), rec.open(t, "west")
		},
		Dialector: sqliteOn,
	})
}
