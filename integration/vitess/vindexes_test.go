// SPDX-License-Identifier: Apache-2.0

package vitess_test

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"vitess.io/vitess/go/json2"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/key"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vschemapb "vitess.io/vitess/go/vt/proto/vschema"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vtgate/vindexes"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

var update = flag.Bool("update", false, "write the vectors of sharding/export")

// vectorsFile holds what Vitess' vindexes give, for runs without Vitess.
const vectorsFile = "../../sharding/export/testdata/vindexes.json"

// slots is a small map of numeric_static_map.
const slots = `{"0": 0, "1": 4611686018427387904, "2": 9223372036854775808, "3": 18446744073709551615}`

// vector is a value and the keyspace id that a vindex gives it, in hexadecimal digits;
// "" if it gives none.
type vector struct {
	Value string `json:"value"`
	ID    string `json:"id"`
}

func TestTheVectorsInTheRepositoryAreThoseOfVitess(t *testing.T) {
	var numbers []sqltypes.Value
	for _, n := range integers(200) {
		numbers = append(numbers, sqltypes.NewInt64(n))
	}
	texts := append([]sqltypes.Value{}, numbers...)
	for _, text := range []string{"", "a", "abc", "Größer", "größer", "数据", "A longer text than thirty-two bytes, which xxhash reads in stripes"} {
		texts = append(texts, sqltypes.NewVarChar(text))
	}
	got := map[string][]vector{}
	for name, values := range map[string][]sqltypes.Value{"reverse_bits": numbers, "xxhash": texts, "numeric_static_map": numbers} {
		params := map[string]string{}
		if name == "numeric_static_map" {
			params["json"] = slots
		}
		vindex, err := vindexes.CreateVindex(name, name, params)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range values {
			got[name] = append(got[name], vector{value.ToString(), hex.EncodeToString(keyspaceID(t, vindex, value))})
		}
	}
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(vectorsFile, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(vectorsFile); err != nil || string(want) != string(text) {
		t.Errorf("%s is not what Vitess gives (%v); run go test -run TheVectors -update . and look at the difference", vectorsFile, err)
	}
}

// keyspaceID asks the vindex; nil means that it gives the value no shard.
func keyspaceID(t *testing.T, vindex vindexes.Vindex, value sqltypes.Value) []byte {
	t.Helper()
	found, err := vindex.(vindexes.SingleColumn).Map(t.Context(), nil, []sqltypes.Value{value})
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", value, found, err)
	}
	switch to := found[0].(type) {
	case key.DestinationKeyspaceID:
		return to
	case key.DestinationNone:
		return nil
	}
	t.Fatalf("%s: %v", value, found[0])
	return nil
}

// integers are the ends of the type, small numbers, powers of 2, ids in sequence, and
// others by lot, the same each time.
func integers(n int) []int64 {
	all := []int64{0, 1, 2, 3, 4, -1, -2, 9223372036854775807, -9223372036854775808}
	for shift := range 63 {
		all = append(all, 1<<shift, 1<<shift-1)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for len(all) < n {
		all = append(all, int64(random.Uint64()), random.Int64N(1_000_000), int64(len(all)))
	}
	return all
}

// cluster is what Vitess reads from the files of an export.
type cluster struct {
	primary vindexes.Vindex
	ranges  []*topodatapb.KeyRange
	tables  []string // what lies in each range
}

func newCluster(t *testing.T, r *sharding.Router, c export.VitessConfig) cluster {
	t.Helper()
	c.Keyspace = "shop"
	out, err := export.Vitess(r, c)
	if err != nil {
		t.Fatal(err)
	}
	var keyspace vschemapb.Keyspace
	if err := json2.UnmarshalPB([]byte(out.Files[0].Text), &keyspace); err != nil {
		t.Fatal(err)
	}
	schema, err := vindexes.BuildKeyspace(&keyspace, sqlparser.NewTestParser())
	if err != nil || schema.Error != nil {
		t.Fatal(err, schema.Error)
	}
	var shards []struct {
		Shard  string
		Tables map[string]string
	}
	if err := json.Unmarshal([]byte(out.Files[1].Text), &shards); err != nil {
		t.Fatal(err)
	}
	vt := cluster{primary: schema.Tables["t"].ColumnVindexes[0].Vindex}
	for _, s := range shards {
		ranges, err := key.ParseShardingSpec(s.Shard)
		if err != nil || len(ranges) != 1 {
			t.Fatal(s.Shard, ranges, err)
		}
		vt.ranges = append(vt.ranges, ranges[0])
		vt.tables = append(vt.tables, s.Tables["t"])
	}
	return vt
}

// place returns the physical table whose rows lie in the shard of the value; "" if
// Vitess finds none.
func (vt cluster) place(t *testing.T, value sqltypes.Value) string {
	t.Helper()
	id := keyspaceID(t, vt.primary, value)
	if id == nil {
		return ""
	}
	var found []string
	for i, r := range vt.ranges {
		if key.KeyRangeContains(r, id) {
			found = append(found, vt.tables[i])
		}
	}
	if len(found) != 1 {
		t.Fatalf("keyspace id %x of %s is in %d shards", id, value, len(found))
	}
	return found[0]
}

func TestVitessItselfPutsEveryKeyWhereTheRouterDoes(t *testing.T) {
	at := func(n int) sharding.Target { return sharding.Target{DB: "east", Table: "t_" + strconv.Itoa(n)} }
	var scattered, runs, single []sharding.Target
	for i := range 256 {
		runs = append(runs, at(i/100))
		single = append(single, at(i))
	}
	for i := range 16 {
		scattered = append(scattered, at(i*i%5))
	}
	for name, test := range map[string]struct {
		rule    sharding.Rule
		targets []sharding.Target
		stored  bool
	}{
		"low(1) over 2":           {rule: sharding.Low(1), targets: single[:2]},
		"low(3) over 8":           {rule: sharding.Low(3), targets: single[:8]},
		"low(10) over 64":         {rule: sharding.Low(10), targets: single[:64]},
		"low(4) over any":         {rule: sharding.Low(4), targets: scattered},
		"mod(24) over 8":          {rule: sharding.Mod(24), targets: single[:8]},
		"offset_step(3, 8)":       {rule: sharding.OffsetStep(3, 8), targets: single[:8]},
		"hash(256) over 3":        {rule: sharding.Hash(256), targets: runs},
		"hash(256) over 256":      {rule: sharding.Hash(256), targets: single},
		"hash_text(256) over 256": {rule: sharding.HashText(256), targets: single},
		"stored slot of mod(12)":  {rule: sharding.Mod(12), targets: single[:6], stored: true},
		"stored slot of bits":     {rule: sharding.Bits(12, 3), targets: single[:8], stored: true},
		"stored slot of hash(24)": {rule: sharding.Hash(24), targets: single[:3], stored: true},
	} {
		t.Run(name, func(t *testing.T) {
			var targets []sharding.Target
			for slot := range test.rule.Slots() {
				targets = append(targets, test.targets[slot%len(test.targets)])
			}
			layout, err := sharding.MapOf(targets...)
			if err != nil {
				t.Fatal(err)
			}
			r, err := sharding.New(sharding.DBs{"east": new(sql.DB)}, sharding.Table{Name: "t", Key: "k", Rule: test.rule, Map: layout})
			if err != nil {
				t.Fatal(err)
			}
			var c export.VitessConfig
			if test.stored {
				c.Buckets = map[string]string{"t": "slot"}
			}
			vt := newCluster(t, r, c)
			negative := 0 // keys without a shard
			for _, k := range integers(120_000) {
				want, value := route(t, r, test.rule, k)
				if test.stored {
					slot, err := test.rule.Slot(k)
					if err != nil {
						t.Fatal(err)
					}
					value = sqltypes.NewInt64(int64(slot))
				}
				got := vt.place(t, value)
				// What CheckVitessRows refuses, it refuses with reason.
				if vt.primary.String() == "reverse_bits" && k < 0 {
					want = ""
					negative++
				}
				if got != want {
					t.Fatalf("key %d lies in %s, and in %q with Vitess", k, want, got)
				}
			}
			t.Logf("120,000 keys, %d of them negative and without a shard", negative)
		})
	}
}

// route returns where the router puts a key, and the key as Vitess gets it.
func route(t *testing.T, r *sharding.Router, rule sharding.Rule, k int64) (string, sqltypes.Value) {
	t.Helper()
	var arg any = k
	value := sqltypes.NewInt64(k)
	if sharding.Describe(rule).Keys == sharding.KeysTexts {
		text := "user-" + strconv.FormatInt(k, 36)
		arg, value = text, sqltypes.NewVarChar(text)
	}
	at, err := r.Target("t", arg)
	if err != nil {
		t.Fatal(err)
	}
	return at.String(), value
}
