// SPDX-License-Identifier: Apache-2.0

//go:build race

package effort

// Race says that the race detector watches.
const Race = true
