// SPDX-License-Identifier: Apache-2.0

// Package evenness measures, for tests of generators, how evenly ids spread over
// shards that are chosen by the remainder of a division.
package evenness

// Of returns chi² per degree of freedom of counts, one for each shard, that are
// expected to be equal: about 1 for counts of draws at random, less for more even
// ones. There must be two counts at least, and not all of them zero.
func Of(counts []int) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	sum, want := 0.0, float64(total)/float64(len(counts))
	for _, n := range counts {
		off := float64(n) - want
		sum += off * off / want
	}
	return sum / float64(len(counts)-1)
}
