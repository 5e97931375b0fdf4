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

// keyRange is a range of keyspace ids of one target. It ends where the next range of its list
// starts. A list covers all ids from 0 on.
type keyRange struct {
	start  uint64 // the first eight bytes of the keyspace id, big-endian
	target sharding.Target
}

// shard is one range of a keyspace with its physical tables.
type shard struct {
	Name   string            `json:"shard"`  // "-40", "40-80"
	Tables map[string]string `json:"tables"` // logical table → "database/table"
}

// evenRanges divides the keyspace ids into 2^width equal ranges and calls target for each.
func evenRanges(width int, target func(i int) sharding.Target) []keyRange {
	all := make([]keyRange, 1<<width)
	for i := range all {
		all[i] = keyRange{uint64(i) << (64 - width), target(i)}
	}
	return merge(all)
}

// merge joins adjacent ranges of the same target.
func merge(all []keyRange) []keyRange {
	return slices.CompactFunc(all, func(a, b keyRange) bool { return a.target == b.target })
}

// shards divides the keyspace where the target of a table changes, so that each shard has the rows
// of one target of each table.
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

// indexOf returns the index of the range that contains a keyspace id.
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

// bound returns an end of a range in Vitess' form: in hex, without the zero bytes at its end, and
// empty at the start of the ids.
func bound(id uint64) string {
	raw := binary.BigEndian.AppendUint64(nil, id)
	for len(raw) > 0 && raw[len(raw)-1] == 0 {
		raw = raw[:len(raw)-1]
	}
	return hex.EncodeToString(raw)
}

// spreadSlots gives each slot its own keyspace id, so that a shard can be split between slots
// later. The ranges of the targets end at multiples of a power of 2, like those of other tables; so
// some are twice as wide as others.
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
