// SPDX-License-Identifier: Apache-2.0

// Package testwait is how tests wait for what another process or goroutine does.
//
// # Promise
//
// A wait ends as soon as what it waits for has come. Until then it goes on for
// minutes, whatever else the machine has to do, and it never counts tries: how
// many there are says how fast the machine is, and nothing about what is waited
// for. A wait that ends in vain fails its test before the deadline of the test
// binary does, says what did not come, and shows all goroutines.
package testwait
