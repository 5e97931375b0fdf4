package export_test

import (
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

func TestVitessAdoptionRefusesWhatRenamesCannotDo(t *testing.T) {
	for says, tables := range map[string][]sharding.Option{
		"would have to be split over several shards": {spread(t, "t", "k", sharding.Low(2), 2), spread(t, "u", "k", sharding.Low(2), 4)},
		"a shard of Vitess is one server's": {
			slots(t, "a", "k", sharding.Low(1), sharding.Target{DB: "east", Table: "a_0"}, sharding.Target{DB: "west", Table: "a_1"}),
			slots(t, "t", "k", sharding.Low(1), sharding.Target{DB: "west", Table: "t_0"}, sharding.Target{DB: "east", Table: "t_1"}),
		},
	} {
		_, err := export.VitessAdoption(router(t, tables...), export.VitessConfig{Keyspace: "shop"}, inServers)
		refused(t, err, "t", says)
	}
}
