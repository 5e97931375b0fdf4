// SPDX-License-Identifier: Apache-2.0

package evenness_test

import (
	"testing"

	"github.com/shardid/shardid/internal/testkit/evenness"
)

func TestCountsAreComparedWithEqualOnes(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   float64
	}{
		{[]int{5, 5, 5, 5}, 0},
		{[]int{8, 12}, 0.8},              // (4 + 4) / 10, one degree of freedom
		{[]int{40, 0, 0, 0, 0}, 40},      // (32² + 4·8²) / 8 / 4
		{[]int{30, 10, 20, 20}, 10. / 3}, // (100 + 100) / 20 / 3
	} {
		if got := evenness.Of(c.counts); got-c.want > 1e-9 || c.want-got > 1e-9 {
			t.Errorf("%v: %v, want %v", c.counts, got, c.want)
		}
	}
}
