// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"slices"

	"github.com/shardid/shardid/sharding"
)

// keyRange is where the keyspace ids of a target start; it ends where the next
// one of the same list starts. A list covers all ids from 0 on.
type keyRange struct {
	start  uint64 // the first eight bytes of the keyspace id, big-endian
	target sharding.Target
}

// shard is one range of a keyspace and what lies in it.
type shard struct {
	Name   string            `json:"shard"`  // "-40", "40-80"
	Tables map[string]string `json:"tables"` // logical table → "database/table"
}

// evenRanges cuts the keyspace ids into 2^width equal ranges and asks for the
// target of each.
func evenRanges(width int, target func(i int) sharding.Target) []keyRange {
	all := make([]keyRange, 1<<width)
	for i := range all {
		all[i] = keyRange{uint64(i) << (64 - width), target(i)}
	}
	return merge(all)
}

// merge joins neighbours of the same target.
func merge(all []keyRange) []keyRange {
	return slices.CompactFunc(all, func(a, b keyRange) bool { return a.target == b.target })
}

// shards cuts the keyspace wherever one of the tables changes its target, so
// that each shard takes the rows of one target of each table.
func shards(tables map[string][]keyRange) []shard {
	var starts []uint64
	for _, ranges := range tables {
		for _, r := range ranges {
			starts = append(starts, r.start)
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	all := make([]shard, len(starts))
	for i, start := range starts {
		all[i] = shard{rangeName(starts, i), map[string]string{}}
		for name, ranges := range tables {
			all[i].Tables[name] = ranges[indexOf(ranges, start)].target.String()
		}
	}
	return all
}

// indexOf returns the range that a keyspace id falls into.
func indexOf(ranges []keyRange, id uint64) int {
	i, found := slices.BinarySearchFunc(ranges, id, func(r keyRange, id uint64) int {
		return compare(r.start, id)
	})
	if !found {
		i--
	}
	return i
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func rangeName(starts []uint64, i int) string {
	name := bound(starts[i]) + "-"
	if i+1 < len(starts) {
		name += bound(starts[i+1])
	}
	return name
}

// bound is how Vitess writes an end of a range: in hex, without the zero bytes
// at its end, and not at all where the ids begin.
func bound(id uint64) string {
	raw := binary.BigEndian.AppendUint64(nil, id)
	for len(raw) > 0 && raw[len(raw)-1] == 0 {
		raw = raw[:len(raw)-1]
	}
	return hex.EncodeToString(raw)
}

// spreadSlots gives each slot a keyspace id of its own, so that a shard can be
// split between slots later. The ranges of the targets end at multiples of a power
// of 2, as those of other tables do: some are twice as wide as others then.
func spreadSlots(slots, targets []sharding.Target) (ids []uint64, ranges []keyRange) {
	width := bits.Len(uint(len(targets) - 1))
	for i, t := range targets {
		ranges = append(ranges, keyRange{uint64(i<<width/len(targets)) << (64 - width), t})
	}
	count := map[sharding.Target]uint64{}
	for _, t := range slots {
		count[t]++
	}
	next := map[sharding.Target]uint64{}
	step := map[sharding.Target]uint64{}
	for i, r := range ranges {
		next[r.target] = r.start
		step[r.target] = (endOf(ranges, i) - r.start) / count[r.target]
	}
	for _, t := range slots {
		ids = append(ids, next[t])
		next[t] += step[t]
	}
	return ids, ranges
}

// endOf returns the end of the i-th range; the last id counts as an end.
func endOf(ranges []keyRange, i int) uint64 {
	if i+1 < len(ranges) {
		return ranges[i+1].start
	}
	return math.MaxUint64
}
