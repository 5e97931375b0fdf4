// SPDX-License-Identifier: Apache-2.0

package snowflake

import (
	"testing"

	"github.com/shardid/shardid/keygen"
)

func TestComposeAllComposesEachStateAcrossTicks(t *testing.T) {
	for name, layout := range keygen.Presets() {
		s := newComposer(layout)
		first := s.before(1000) - 2 // the last three of a tick, then whole ones
		ids := make([]int64, 3*(s.seqMask+1)+10)
		s.composeAll(ids, first, s.worker(1))
		for i, id := range ids {
			if want := s.compose(first+int64(i), s.worker(1)); id != want {
				t.Fatalf("%s: id %d is %d, want %d", name, i, id, want)
			}
		}
	}
}
