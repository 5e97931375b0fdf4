// SPDX-License-Identifier: Apache-2.0

package effort

import "os"

// Soak reports whether this is the long run: the environment has SHARDID_SOAK.
func Soak() bool { return os.Getenv("SHARDID_SOAK") != "" }

// Cases returns the number of random, sequential cases to try: usual, or soak in the long run, and
// a tenth of that under the race detector, but at least one.
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
