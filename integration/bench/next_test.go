// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkNext measures what an id takes. The floor, ours and the others come
// in turns with every number of goroutines.
func BenchmarkNext(b *testing.B) {
	for _, s := range slices.Concat(floor, ours, peers) {
		b.Run(s.name, func(b *testing.B) {
			for _, n := range goroutines {
				b.Run(fmt.Sprintf("goroutines=%d", n), func(b *testing.B) {
					loop := s.start(b)
					b.ReportAllocs()
					b.ResetTimer()
					share(b, n, loop)
				})
			}
		})
	}
}
