// SPDX-License-Identifier: Apache-2.0

// Package keygentest holds the conformance suites that every generator, source
// and registry of worker ids runs, those of this module and those that users write:
// what the contract of package keygen promises, as tests. It is for tests only.
//
// A suite is one call in a test. A generator of one's own:
//
//	func TestMyGenerator(t *testing.T) {
//		keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return newMine(t) })
//	}
//
// [Keys] is for generators of other kinds of keys, and for those whose keys do not
// rise; a source runs [Source], and a registry of worker ids [Ledger]:
//
//	func TestMySource(t *testing.T) {
//		keygentest.Source(t, func(t *testing.T) keygen.Source { return handleOnOneCounter(t) })
//	}
//
//	func TestMyRegistry(t *testing.T) {
//		keygentest.Ledger(t, func(t *testing.T) workerid.Ledger { return handleOnOneLedger(t) })
//	}
//
// The file own_test.go has a whole generator, a source in a file and a registry in a
// store that compares and swaps (etcd, Consul, DynamoDB), each with its test. The suites
// are tested, too: they find what implementations get wrong most often.
//
// A suite cannot see what a server forgets when it is killed. [MemoryLedger] and
// [WallClock] stand for ledgers that fail over and clocks that step.
package keygentest
