// SPDX-License-Identifier: Apache-2.0

// Package effort tells tests how many cases to try: as many as everybody waits for, more
// in the long programme (make soak), fewer under the race detector, where each takes up
// to twenty times as long.
package effort
