// SPDX-License-Identifier: Apache-2.0

package effort

import "os"

// Soak says that the long programme runs: the environment has SHARDID_SOAK.
func Soak() bool { return os.Getenv("SHARDID_SOAK") != "" }

// Cases returns how many cases to try of what is random and not concurrent: usual of
// them, soak in the long programme, and a tenth of that under the race detector, one at
// least.
func Cases[N int | int64 | uint64](usual, soak N) N {
	n := usual
	if Soak() {
		n = soak
	}
	if Race {
		n = max(1, n/10)
	}
	return n
}
