// SPDX-License-Identifier: Apache-2.0

// Package uuid makes UUIDs (RFC 9562, GUID) as keys of [16]byte, for BINARY(16)
// columns, and as texts, for CHAR(36) and CHAR(32).
//
// # Which version
//
//   - [V7] is the one for primary keys: its first 48 bits are the time, so new
//     rows go to the end of the index.
//   - [V4] is random. It contains no information, not even the time, and puts each
//     new row on another page of the index.
//   - [V1] and [V6] hold the time in units of 100 ns, for systems that have such
//     keys already; V6 is V1 with the time's high bits first, so that it sorts.
//   - [V3] and [V5] are functions, not generators: one name always gives one
//     UUID. Use V5; V3 is for systems that use it already.
//   - [V2] is a function too; its comment says why.
//
// One column may hold all versions: their version digits differ, so UUIDs of two
// versions are never equal.
//
// # Promise
//
// A UUID is unique because of its random bits, which come from the system's
// cryptographic generator. V4 has 122 of them. V7 has 62, beside the time in quarters
// of a microsecond. V1 and V6 have 47, which each generator chooses once, beside the time
// and a counter. So restart the processes in a copy of a running virtual machine that use V1 or
// V6: the copy has the same bits. Processes need not know each other. Generators of this package never
// wait, need not be closed and are safe for concurrent use.
//
// Ids of V7 rise strictly in a process, also when the clock is set back, and with
// time across processes. Ids of V6 rise with time, except those of the same
// 100 ns. The others have no order.
//
// The order is that of the bytes, so that of BINARY(16), and of the texts too,
// which are always in lower case. It is not that of SQL Server's
// uniqueidentifier, nor of MySQL's UUID_TO_BIN(…, 1), which is for V1.
//
// # Failure modes
//
// A wrong clock puts wrong times into ids and does no other harm. When the clock goes back,
// V7 continues from its last time, and V1 and V6 choose new random bits; they also do so when
// the clock stands still for longer than their counter lasts. A program that
// sets the source of randomness of github.com/google/uuid does not change the ids of this
// package.
package uuid
