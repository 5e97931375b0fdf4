// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

var inServers = map[string]string{"east": "shop_east", "west": "shop_west"}

func TestVitessAdoptionGolden(t *testing.T) {
	out, err := export.VitessAdoption(router(t,
		inGroup(spread(t, "orders", "user_id", sharding.Low(10), 4), "orders"),
		inGroup(spread(t, "items", "user_id", sharding.Low(10), 4), "orders"),
		sharding.Broadcast("regions")), export.VitessConfig{Keyspace: "shop"}, inServers)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "adoption", out)
}

func TestVitessAdoptionRefusesLayoutsThatNeedMoreThanRenames(t *testing.T) {
	for says, tables := range map[string][]sharding.Option{
		"would have to be split over several shards": {spread(t, "t", "k", sharding.Low(2), 2), spread(t, "u", "k", sharding.Low(2), 4)},
		"a shard of Vitess is on one server": {
			slots(t, "a", "k", sharding.Low(1), sharding.Target{DB: "east", Table: "a_0"}, sharding.Target{DB: "west", Table: "a_1"}),
			slots(t, "t", "k", sharding.Low(1), sharding.Target{DB: "west", Table: "t_0"}, sharding.Target{DB: "east", Table: "t_1"}),
		},
	} {
		_, err := export.VitessAdoption(router(t, tables...), export.VitessConfig{Keyspace: "shop"}, inServers)
		refused(t, err, "t", says)
	}
}

func TestVitessAdoptionRenamesNothingWhereEachShardIsADatabaseWithLogicalNames(t *testing.T) {
	layout := func(table, inEast string) sharding.Table {
		return slots(t, table, "user_id", sharding.Low(1), sharding.Target{DB: "east", Table: inEast}, sharding.Target{DB: "west", Table: table})
	}
	out, err := export.VitessAdoption(router(t, layout("orders", "orders"), layout("items", "items"), sharding.Broadcast("regions")),
		export.VitessConfig{Keyspace: "shop"}, inServers)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "inplace", out)

	// One table under another name is reason enough to rename those of its database.
	out, err = export.VitessAdoption(router(t, layout("orders", "orders"), layout("items", "items_0")), export.VitessConfig{Keyspace: "shop"}, inServers)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range out.Files {
		if strings.HasPrefix(f.Name, "adopt.west") {
			t.Errorf("%s: %s", f.Name, f.Text)
		}
		if f.Name == "vttablets.sh" && (!strings.Contains(f.Text, "'-80' 'shop_start_80'") || !strings.Contains(f.Text, "'80-' 'shop_west'")) {
			t.Error(f.Text)
		}
	}
	if len(out.Files) != 4 || out.Files[0].Name != "adopt.east.sql" {
		t.Errorf("%d files: %v", len(out.Files), out.Files)
	}
}
