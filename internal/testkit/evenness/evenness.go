// SPDX-License-Identifier: Apache-2.0

// Package evenness measures, for tests of generators, how evenly ids spread over shards that are
// chosen by the remainder of a division.
package evenness

// Of returns chi² per degree of freedom of counts that are expected to be equal, one for each
// shard: about 1 for random counts, and less for more even ones. There must be at least two counts,
// not all zero.
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
