// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/bits"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

func TestVitessGolden(t *testing.T) {
	r := router(t,
		inGroup(withGene(spread(t, "orders", "user_id", sharding.Low(10), 8), sharding.Low(10)), "orders"),
		inGroup(spread(t, "items", "order_id", sharding.Low(10), 8), "orders"),
		spread(t, "events", "id", sharding.OffsetStep(1, 2), 2),
		spread(t, "tenants", "id", sharding.Mod(12), 6),
		sharding.Broadcast("regions"))
	out, err := export.Vitess(r, export.VitessConfig{
		Keyspace: "shop", Lookups: true,
		Buckets:   map[string]string{"tenants": "bucket"},
		Sequences: map[string]export.Sequence{"orders": {Column: "id", Next: 5000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "vitess", out)
}

// cluster is a Vitess cluster: it places rows by Vitess' published definitions and the files of an
// export.
type cluster struct {
	vschema struct {
		Vindexes map[string]struct {
			Type   string
			Params map[string]string
		}
		Tables map[string]struct {
			Column []struct{ Column, Name string } `json:"column_vindexes"`
		}
	}
	shards []struct {
		Shard  string
		Tables map[string]string
	}
}

func newCluster(t *testing.T, r *sharding.Router, c export.VitessConfig) cluster {
	t.Helper()
	c.Keyspace = "shop"
	out, err := export.Vitess(r, c)
	if err != nil {
		t.Fatal(err)
	}
	var vt cluster
	for i, into := range []any{&vt.vschema, &vt.shards} {
		if err := json.Unmarshal([]byte(out.Files[i].Text), into); err != nil {
			t.Fatal(err)
		}
	}
	return vt
}

// place returns the physical table in the shard of the value of the table's primary vindex, "" if
// Vitess finds none.
func (vt cluster) place(t *testing.T, table, value string) string {
	t.Helper()
	id := hex.EncodeToString(vt.keyspaceID(t, vt.vschema.Tables[table].Column[0].Name, value))
	if id == "" {
		return ""
	}
	var found []string
	for _, s := range vt.shards {
		low, high, _ := strings.Cut(s.Shard, "-")
		// Vitess compares the bytes; an end that is left out has no limit.
		if id >= low && (high == "" || id < high) {
			found = append(found, s.Tables[table])
		}
	}
	if len(found) != 1 {
		t.Fatalf("keyspace id %s is in %d shards", id, len(found))
	}
	return found[0]
}

// keyspaceID returns the result of the vindex for a value, nil for none.
func (vt cluster) keyspaceID(t *testing.T, vindex, value string) []byte {
	t.Helper()
	v := vt.vschema.Vindexes[vindex]
	return keyspaceID(t, v.Type, v.Params, value)
}

// keyspaceID implements the definitions of the vindexes in Vitess' documentation.
func keyspaceID(t *testing.T, vindex string, params map[string]string, value string) []byte {
	t.Helper()
	switch vindex {
	case "reverse_bits": // the number's bits in reverse, big-endian
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return nil
		}
		return binary.BigEndian.AppendUint64(nil, bits.Reverse64(n))
	case "xxhash": // the hash of the text, little-endian
		return binary.LittleEndian.AppendUint64(nil, xxhash64(value))
	case "numeric_static_map": // what the map says, big-endian
		ids := map[string]uint64{}
		if err := json.Unmarshal([]byte(params["json"]), &ids); err != nil {
			t.Fatal(err)
		}
		id, listed := ids[value]
		if n, err := strconv.ParseUint(value, 10, 64); err == nil && !listed {
			id = n // a number that the map lacks stands for itself
		} else if err != nil {
			return nil
		}
		return binary.BigEndian.AppendUint64(nil, id)
	}
	t.Fatalf("there is no vindex %q", vindex)
	return nil
}

// The vectors are the results of the vindexes of Vitess v24.0.0. The module integration/vitess
// writes the file, and compares 120,000 keys of each rule with Vitess' code.
func TestTheDefinitionsOfTheVindexesAreThoseOfVitess(t *testing.T) {
	text, err := os.ReadFile("testdata/vindexes.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors map[string][]struct{ Value, ID string }
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	slots := map[string]string{"json": `{"0": 0, "1": 4611686018427387904, "2": 9223372036854775808, "3": 18446744073709551615}`}
	for _, vindex := range []string{"reverse_bits", "xxhash", "numeric_static_map"} {
		if len(vectors[vindex]) < 200 {
			t.Errorf("%s has %d vectors", vindex, len(vectors[vindex]))
		}
		for _, v := range vectors[vindex] {
			if got := hex.EncodeToString(keyspaceID(t, vindex, slots, v.Value)); got != v.ID {
				t.Errorf("%s gives %q the keyspace id %s, and in Vitess %s", vindex, v.Value, got, v.ID)
			}
		}
	}
}

func TestVitessPutsEveryKeyWhereTheRouterDoes(t *testing.T) {
	east := func(n int) sharding.Target { return sharding.Target{DB: "east", Table: "t_" + strconv.Itoa(n)} }
	var scattered []sharding.Target
	for i := range 16 {
		scattered = append(scattered, east(i*i%5))
	}
	var runs []sharding.Target
	for i := range 256 {
		runs = append(runs, east(i/100))
	}
	tables := map[string]sharding.Table{
		"mod 8 of 24":   spread(t, "t", "k", sharding.Mod(24), 8),
		"offset 3 of 8": spread(t, "t", "k", sharding.OffsetStep(3, 8), 8),
		"any map":       slots(t, "t", "k", sharding.Low(4), scattered...),
		"hash in runs":  slots(t, "t", "k", sharding.Hash(256), runs...),
		"hash of 256":   spread(t, "t", "k", sharding.Hash(256), 256),
		"one table":     slots(t, "t", "k", sharding.Low(1), east(0), east(0)),
	}
	for k := 1; k <= 8; k++ {
		tables["low "+strconv.Itoa(k)] = spread(t, "t", "k", sharding.Low(k), 1<<k)
		tables["low 10 over 2^"+strconv.Itoa(k)] = spread(t, "t", "k", sharding.Low(10), 1<<k)
	}
	for name, table := range tables {
		t.Run(name, func(t *testing.T) {
			r := router(t, table, spread(t, "other", "k", sharding.Low(2), 4))
			vt := newCluster(t, r, export.VitessConfig{})
			for _, k := range keys() {
				want, got := target(t, r, k), vt.place(t, "t", strconv.FormatInt(k, 10))
				if k < 0 && vt.vschema.Tables["t"].Column[0].Name == "reverse_bits" {
					want = "" // which CheckVitessRows refuses
				}
				if want != got {
					t.Fatalf("key %d lies in %s, and in %s with Vitess", k, want, got)
				}
			}
		})
	}
}

func TestVitessPutsEveryTextWhereTheRouterDoes(t *testing.T) {
	r := router(t, spread(t, "t", "k", sharding.HashText(256), 256))
	vt := newCluster(t, r, export.VitessConfig{})
	for _, k := range []string{"", "a", "abc", "größer", strings.Repeat("shard", 40)} {
		if want, got := target(t, r, k), vt.place(t, "t", k); want != got {
			t.Errorf("%q lies in %s, and in %s with Vitess", k, want, got)
		}
	}
}

// With a stored slot, Vitess can place the rows of any rule.
func TestVitessFollowsAStoredSlotWhateverTheRule(t *testing.T) {
	for name, rule := range map[string]sharding.Rule{
		"bits": sharding.Bits(12, 3), "hash": sharding.Hash(24), "mod": sharding.Mod(12), "ranges": sharding.Ranges(0, 1000, 50000), "low": sharding.Low(10),
	} {
		t.Run(name, func(t *testing.T) {
			layout := map[string]int{"bits": 8, "hash": 3, "mod": 6, "ranges": 4, "low": 64}
			r := router(t, spread(t, "t", "k", rule, layout[name]), spread(t, "other", "k", sharding.Low(3), 8))
			vt := newCluster(t, r, export.VitessConfig{Buckets: map[string]string{"t": "bucket"}})
			seen := map[string]bool{}
			for _, k := range keys() {
				slot, err := rule.Slot(k)
				if err != nil {
					t.Fatal(err)
				}
				want, got := target(t, r, k), vt.place(t, "t", strconv.Itoa(int(slot)))
				if want != got {
					t.Fatalf("key %d lies in %s, and in %s with Vitess", k, want, got)
				}
				seen[got] = true
			}
			if len(seen) != layout[name] {
				t.Errorf("%d targets were reached", len(seen))
			}
		})
	}
}

// The order that anybody can check by hand: slot 0, 2, 1, 3 of four.
func TestVitessShardsOfFourSlotsAreInBitReversedOrder(t *testing.T) {
	vt := newCluster(t, router(t, spread(t, "t", "k", sharding.Low(2), 4)), export.VitessConfig{})
	var got []string
	for _, s := range vt.shards {
		got = append(got, s.Shard+" "+s.Tables["t"])
	}
	want := []string{"-40 east/t_00", "40-80 east/t_02", "80-c0 west/t_01", "c0- west/t_03"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestVitessRefusesWhatNoVindexComputes(t *testing.T) {
	for _, test := range []struct {
		table sharding.Table
		says  string
	}{
		{spread(t, "t", "k", sharding.Mod(12), 12), "repeat every 12 slots"},
		{spread(t, "t", "k", sharding.OffsetStep(1, 3), 3), "repeat every 3 slots"},
		{spread(t, "t", "k", sharding.Bits(12, 2), 4), "no vindex computes the rule bits"},
		{spread(t, "t", "k", sharding.Ranges(1, 2, 3), 4), "no vindex computes the rule ranges"},
		{spread(t, "t", "k", sharding.Compat(4), 4), "no vindex computes the rule compat"},
		{spread(t, "t", "k", sharding.Hash(4), 4), "scattered over 256 key ranges"},
		{withGene(spread(t, "t", "k", sharding.Low(2), 4), sharding.Low(2)), "whole keyspace id"},
	} {
		_, err := export.Vitess(router(t, test.table), export.VitessConfig{Keyspace: "shop"})
		refused(t, err, "t", test.says)
	}
}

func TestVitessNamesTheSettingThatIsWrong(t *testing.T) {
	r := router(t, spread(t, "t", "k", sharding.Low(2), 4))
	for says, c := range map[string]export.VitessConfig{
		"Keyspace":                   {},
		"Unsharded":                  {Keyspace: "a", Unsharded: "b c"},
		`Buckets: table "x"`:         {Keyspace: "a", Buckets: map[string]string{"x": "b"}},
		"Buckets: t":                 {Keyspace: "a", Buckets: map[string]string{"t": "b;c"}},
		`Sequences: table "x"`:       {Keyspace: "a", Sequences: map[string]export.Sequence{"x": {Column: "id", Next: 1}}},
		"Sequences: t: Next must be": {Keyspace: "a", Sequences: map[string]export.Sequence{"t": {Column: "id"}}},
		"Sequences: t: \"\": not a":  {Keyspace: "a", Sequences: map[string]export.Sequence{"t": {Next: 1}}},
	} {
		if _, err := export.Vitess(r, c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", c, err, says)
		}
	}
}

// xxhash64 implements the algorithm's description, with seed 0. It is independent of the module's
// own.
func xxhash64(text string) uint64 {
	const p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
	b := []byte(text)
	round := func(acc, lane uint64) uint64 { return bits.RotateLeft64(acc+lane*p2, 31) * p1 }
	h := uint64(p5)
	if len(b) >= 32 {
		one, two := uint64(p1), uint64(p2)
		acc := [4]uint64{one + two, two, 0, -one}
		for ; len(b) >= 32; b = b[32:] {
			for i := range acc {
				acc[i] = round(acc[i], binary.LittleEndian.Uint64(b[8*i:]))
			}
		}
		h = bits.RotateLeft64(acc[0], 1) + bits.RotateLeft64(acc[1], 7) + bits.RotateLeft64(acc[2], 12) + bits.RotateLeft64(acc[3], 18)
		for _, a := range acc {
			h = (h^round(0, a))*p1 + p4
		}
	}
	h += uint64(len(text))
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(b)), 27)*p1 + p4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(b))*p1, 23)*p2 + p3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*p5, 11) * p1
	}
	h = (h ^ h>>33) * p2
	h = (h ^ h>>29) * p3
	return h ^ h>>32
}

func TestXXHashOfPublishedVectors(t *testing.T) {
	for text, want := range map[string]uint64{
		"": 0xef46db3751d8e999, "a": 0xd24ec4f1a98c6e5b, "abc": 0x44bc2cf5ad770999,
		"Nobody inspects the spammish repetition": 0xfbcea83c8a378bf1,
	} {
		if got := xxhash64(text); got != want {
			t.Errorf("%q: %x, want %x", text, got, want)
		}
	}
}
