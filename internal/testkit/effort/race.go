// SPDX-License-Identifier: Apache-2.0

//go:build race

package effort

// Race reports whether the race detector is on.
const Race = true
