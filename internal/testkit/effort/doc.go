// SPDX-License-Identifier: Apache-2.0

// Package effort tells tests how many cases to try: the usual number, more in the long run (make
// soak), and fewer under the race detector, where a case takes up to twenty times as long.
package effort
