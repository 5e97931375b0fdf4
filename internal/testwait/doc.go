// SPDX-License-Identifier: Apache-2.0

// Package testwait waits in tests for another process or goroutine.
//
// # Promise
//
// A wait ends as soon as its condition holds. Until then it continues for minutes, however busy the
// machine is, and it never counts tries: their number depends on the speed of the machine only. A
// wait whose condition never holds fails its test before the deadline of the test binary, names the
// condition, and prints all goroutines.
package testwait
