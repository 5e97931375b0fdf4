// SPDX-License-Identifier: Apache-2.0

package effort_test

import (
	"testing"

	"github.com/shardid/shardid/internal/testkit/effort"
)

func TestTheLongProgrammeTriesMoreAndTheRaceDetectorFewer(t *testing.T) {
	share := 1
	if effort.Race {
		share = 10
	}
	t.Setenv("SHARDID_SOAK", "")
	if n := effort.Cases(200, 5000); effort.Soak() || n != 200/share {
		t.Errorf("%d cases", n)
	}
	if n := effort.Cases(1, 1); n != 1 {
		t.Errorf("%d cases", n)
	}
	t.Setenv("SHARDID_SOAK", "1")
	if n := effort.Cases(200, 5000); !effort.Soak() || n != 5000/share {
		t.Errorf("%d cases", n)
	}
}
