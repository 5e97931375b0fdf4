// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// VitessConfig has the settings of a VSchema that the router lacks.
type VitessConfig struct {
	// Keyspace is the sharded keyspace of the tables. It is required.
	Keyspace string
	// Unsharded is the keyspace of the sequence tables. Defaults to Keyspace + "_global".
	Unsharded string
	// Buckets names, for tables whose rule no vindex computes, the column that stores each row's
	// slot. The rows are then placed by it, with numeric_static_map. Defaults to none.
	Buckets map[string]string
	// Sequences names, by table, the column that Vitess will number. Defaults to none: the
	// application's generators continue to make the ids.
	Sequences map[string]Sequence
	// Lookups makes columns that carry the slot (Table.Also) vindexes of the type
	// consistent_lookup_unique, each with a table that must be filled. Without it, or a bucket, a
	// table with such columns is refused.
	Lookups bool
}

// Sequence is the column that Vitess numbers, and the first number, which must be above all numbers
// in use.
type Sequence struct {
	Column string `json:"column"`
	Next   int64  `json:"next"`
}

const vitess = "vitess"

// Vitess returns the VSchema of the router's tables (vschema.json), the shards that the keyspace
// needs with their physical tables (shards.json), and the SQL of sequence and lookup tables if
// there are any.
//
// Low(k), Mod(2^k) and OffsetStep(n, 2^k) become reverse_bits, whose key ranges are the residues in
// bit-reversed order; Hash becomes xxhash; a column that stores the slot becomes
// numeric_static_map. Any other rule is refused.
func Vitess(r *sharding.Router, c VitessConfig) (Export, error) {
	k, err := newKeyspace(r, c)
	if err != nil {
		return Export{}, err
	}
	return k.export()
}

func newKeyspace(r *sharding.Router, c VitessConfig) (*keyspace, error) {
	c = c.withDefaults()
	all := layouts(r)
	if err := c.validate(all); err != nil {
		return nil, err
	}
	k := &keyspace{
		config:  c,
		vschema: vschema{Sharded: true, Vindexes: map[string]vindex{}, Tables: map[string]vtable{}},
		ranges:  map[string][]keyRange{},
		notes:   []string{}, // [] in JSON
	}
	var errs []error
	for _, l := range all {
		errs = append(errs, k.add(l))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, name := range r.Broadcasts() {
		k.vschema.Tables[name] = vtable{Type: "reference"}
	}
	return k, nil
}

func (c VitessConfig) withDefaults() VitessConfig {
	if c.Unsharded == "" {
		c.Unsharded = c.Keyspace + "_global"
	}
	return c
}

func (c VitessConfig) validate(all []layout) error {
	errs := []error{
		checkName("Keyspace", c.Keyspace), checkName("Unsharded", c.Unsharded),
		known(all, "Buckets", c.Buckets), known(all, "Sequences", c.Sequences),
	}
	for _, table := range slices.Sorted(maps.Keys(c.Buckets)) {
		errs = append(errs, checkName("Buckets: "+table, c.Buckets[table]))
	}
	for _, table := range slices.Sorted(maps.Keys(c.Sequences)) {
		s := c.Sequences[table]
		errs = append(errs, checkName("Sequences: "+table, s.Column))
		if s.Next < 1 {
			errs = append(errs, fmt.Errorf("export: Sequences: %s: Next must be 1 or above, and above every id in use", table))
		}
	}
	return errors.Join(errs...)
}

// vschema is the JSON form of a keyspace, as ApplyVSchema accepts it.
type vschema struct {
	Sharded  bool              `json:"sharded"`
	Vindexes map[string]vindex `json:"vindexes,omitempty"`
	Tables   map[string]vtable `json:"tables"`
}

type vindex struct {
	Type   string            `json:"type"`
	Params map[string]string `json:"params,omitempty"`
	Owner  string            `json:"owner,omitempty"`
}

type vtable struct {
	Type          string         `json:"type,omitempty"`
	Vindexes      []columnVindex `json:"column_vindexes,omitempty"`
	AutoIncrement *autoIncrement `json:"auto_increment,omitempty"`
}

type columnVindex struct {
	Column string `json:"column"`
	Name   string `json:"name"`
}

type autoIncrement struct {
	Column   string `json:"column"`
	Sequence string `json:"sequence"`
}

// keyspace is an export that is being computed.
type keyspace struct {
	config  VitessConfig
	vschema vschema
	ranges  map[string][]keyRange // by logical table
	lookups []lookup
	notes   []string
}

// lookup is a table that maps the values of a column to the locations of their rows.
type lookup struct{ table, column string }

func (k *keyspace) add(l layout) error {
	var out vtable
	var err error
	if column, ok := k.config.Buckets[l.Name]; ok {
		out.Vindexes = k.byBucket(l, column)
	} else if out.Vindexes, err = k.byKey(l); err != nil {
		return err
	}
	if s, ok := k.config.Sequences[l.Name]; ok {
		out.AutoIncrement = &autoIncrement{s.Column, k.config.Unsharded + "." + sequenceName(l)}
	}
	k.vschema.Tables[l.Name] = out
	return nil
}

// byKey places rows by the sharding key itself.
func (k *keyspace) byKey(l layout) ([]columnVindex, error) {
	name, ranges, err := functional(l)
	if err != nil {
		return nil, err
	}
	k.vschema.Vindexes[name] = vindex{Type: name}
	k.ranges[l.Name] = ranges
	if name == reverseBits {
		k.note("Vitess' reverse_bits is defined on unsigned numbers; versions that refuse negative ones refuse rows with negative keys.")
	}
	columns := []columnVindex{{l.Key, name}}
	if len(l.Also) == 0 {
		return columns, nil
	}
	if !k.config.Lookups {
		return nil, l.refuse(
			fmt.Sprintf("%s carries the slot of %s, but a second functional vindex must compute the whole keyspace id, not its first bits", l.Also[0].Column, l.Key),
			"set Lookups, or store the slot in a column and name it in Buckets")
	}
	return append(columns, k.byLookup(l)...), nil
}

func (k *keyspace) byLookup(l layout) []columnVindex {
	var columns []columnVindex
	for _, also := range l.Also {
		name := l.Name + "_" + also.Column + "_lookup"
		k.vschema.Vindexes[name] = vindex{
			Type:   "consistent_lookup_unique",
			Params: map[string]string{"table": name, "from": also.Column, "to": "keyspace_id"},
			Owner:  l.Name,
		}
		k.vschema.Vindexes[xxhash] = vindex{Type: xxhash}
		k.vschema.Tables[name] = vtable{Vindexes: []columnVindex{{also.Column, xxhash}}}
		k.lookups = append(k.lookups, lookup{name, also.Column})
		columns = append(columns, columnVindex{also.Column, name})
	}
	k.note("The lookup tables in lookups.sql are empty: fill them with LookupVindex create before old rows are queried by those columns.")
	return columns
}

// byBucket places rows by the column that stores their slot.
func (k *keyspace) byBucket(l layout, column string) []columnVindex {
	ids, ranges := spreadSlots(slotTargets(l.Table), l.distinct())
	numbers := make(map[string]uint64, len(ids))
	for slot, id := range ids {
		numbers[strconv.Itoa(slot)] = id
	}
	table, err := json.Marshal(numbers)
	if err != nil {
		panic("bug: numbers have a JSON form: " + err.Error())
	}
	name := l.Name + "_" + column
	k.vschema.Vindexes[name] = vindex{Type: "numeric_static_map", Params: map[string]string{"json": string(table)}}
	k.ranges[l.Name] = merge(ranges)
	k.note(fmt.Sprintf("%s.%s must hold the slot of each row, from 0 to %d, and statements must name it: Vitess does not compute it from %s.",
		l.Name, column, len(ids)-1, l.Key))
	return []columnVindex{{column, name}}
}

func (k *keyspace) note(text string) {
	if !slices.Contains(k.notes, text) {
		k.notes = append(k.notes, text)
	}
}

// The vindexes that compute a keyspace id from a key alone.
const (
	reverseBits = "reverse_bits"
	xxhash      = "xxhash"
)

// functional returns the vindex that places every key as the table's rule does, and the ranges of
// its keyspace ids.
func functional(l layout) (name string, ranges []keyRange, err error) {
	n := len(l.targets)
	if n&(n-1) != 0 {
		return "", nil, l.refuse(fmt.Sprintf("its targets repeat every %d slots, but Vitess divides its ranges by powers of 2", n), useBucket)
	}
	if l.rule.Kind == sharding.KindHash || l.rule.Kind == sharding.KindHashText {
		return byHash(l)
	}
	shift, isModulo := l.shift()
	if !isModulo {
		return "", nil, l.refuse(fmt.Sprintf("no vindex computes the rule %s", l.rule.Kind), useBucket)
	}
	width := bits.Len(uint(n)) - 1
	return reverseBits, evenRanges(width, func(i int) sharding.Target {
		residue := int(bits.Reverse64(uint64(i)) >> (64 - width))
		return l.targets[(residue+shift)%n]
	}), nil
}

const useBucket = "store the slot in a column of the table and name it in Buckets"

// byHash returns the vindex xxhash. Its keyspace id begins with the lowest byte of the hash. So
// slots, which are the lowest bits of the hash, are consecutive ranges if there are 256 of them.
func byHash(l layout) (name string, ranges []keyRange, err error) {
	n := len(l.targets)
	width := 8
	if n > 1<<width {
		width = 16
	}
	ranges = evenRanges(width, func(i int) sharding.Target {
		low := i
		if width == 16 {
			low = int(bits.ReverseBytes16(uint16(i)))
		}
		return l.targets[low%n]
	})
	if len(ranges) > len(l.distinct()) {
		return "", nil, l.refuse(
			fmt.Sprintf("a keyspace id of xxhash begins with the lowest byte of the hash, so the slots of one of its %d targets would be scattered over %d key ranges",
				len(l.distinct()), len(ranges)),
			"give it 256 slots, and each target a run of adjacent slots (Hash(256) and MapOf); or "+useBucket)
	}
	return xxhash, ranges, nil
}

func (l layout) refuse(reason, way string) error {
	return &RefusedError{vitess, l.Name, reason, way}
}

func sequenceName(l layout) string { return l.Name + "_seq" }

// export writes the files; those of every export come first.
func (k *keyspace) export() (Export, error) {
	out := Export{Notes: k.notes, Files: []File{
		{"vschema.json", asJSON(k.vschema)},
		{"shards.json", asJSON(shards(k.ranges))},
	}}
	if len(k.lookups) > 0 {
		out.Files = append(out.Files, File{"lookups.sql", k.lookupSQL()})
	}
	if len(k.config.Sequences) > 0 {
		out.Files = append(out.Files,
			File{"sequences.vschema.json", asJSON(k.sequences())}, File{"sequences.sql", k.sequenceSQL()})
	}
	return out, nil
}

func asJSON(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("bug: an export has a JSON form: " + err.Error())
	}
	return string(text) + "\n"
}

// sequences returns the VSchema of the unsharded keyspace.
func (k *keyspace) sequences() vschema {
	out := vschema{Tables: map[string]vtable{}}
	for table := range k.config.Sequences {
		out.Tables[table+"_seq"] = vtable{Type: "sequence"}
	}
	return out
}

func (k *keyspace) sequenceSQL() string {
	var text strings.Builder
	for _, table := range slices.Sorted(maps.Keys(k.config.Sequences)) {
		fmt.Fprintf(&text, "create table %[1]s_seq(id bigint, next_id bigint, cache bigint, primary key(id)) comment 'vitess_sequence';\n"+
			"insert into %[1]s_seq(id, next_id, cache) values(0, %[2]d, 1000);\n", table, k.config.Sequences[table].Next)
	}
	return text.String()
}

func (k *keyspace) lookupSQL() string {
	var text strings.Builder
	for _, l := range k.lookups {
		fmt.Fprintf(&text, "create table %s(%s bigint not null, keyspace_id varbinary(8), primary key(%[2]s));\n", l.table, l.column)
	}
	return text.String()
}
