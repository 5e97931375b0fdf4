// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

func TestFDWReadsEachRuleAndPrunesWhatSQLComputes(t *testing.T) {
	r := router(t,
		spread(t, "orders", "user_id", sharding.Low(3), 4),
		spread(t, "events", "user_id", sharding.Bits(12, 2), 4),
		spread(t, "carts", "user_id", sharding.OffsetStep(1, 4), 4),
		spread(t, "visits", "visitor", sharding.HashText(4), 4),
		slots(t, "odd", "id", sharding.Mod(2), sharding.Target{DB: "west", Table: "b"}, sharding.Target{DB: "west", Table: "a"}),
		sharding.Broadcast("regions"),
	)
	out, err := export.FDW(r)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "fdw", out)
}

func TestFDWRefusesANameThatPostgreSQLWouldCut(t *testing.T) {
	_, err := export.FDW(router(t, spread(t, strings.Repeat("o", 60), "user_id", sharding.Mod(4), 4)))
	if refused := (*export.RefusedError)(nil); !errors.As(err, &refused) || refused.System != "fdw" {
		t.Errorf("%v", err)
	}
}
