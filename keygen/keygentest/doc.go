// SPDX-License-Identifier: Apache-2.0

// Package keygentest has conformance suites for generators, sources and registries of
// worker ids. They test the contract of package keygen, for implementations of this module
// and of users. It is for tests only.
//
// A suite is one call in a test. For your own generator:
//
//	func TestMyGenerator(t *testing.T) {
//		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return newMine(t) })
//	}
//
// [Keys] is for generators of other kinds of keys, and for generators whose keys do not
// rise. [Source] is for sources, [Ledger] for registries of worker ids:
//
//	func TestMySource(t *testing.T) {
//		keygentest.Source(t, func(t *testing.T) keygen.Source { return handleOnOneCounter(t) })
//	}
//
//	func TestMyRegistry(t *testing.T) {
//		keygentest.Ledger(t, func(t *testing.T) workerid.Ledger { return handleOnOneLedger(t) })
//	}
//
// The file own_test.go has a complete generator, a source in a file, and a registry in a
// store with compare-and-swap (etcd, Consul, DynamoDB), each with its test. The suites have
// tests, too, which run them on faulty implementations.
//
// A suite cannot test what a server loses when it is killed. [MemoryLedger] simulates
// ledgers that fail over, and [WallClock] a clock that is set.
package keygentest
