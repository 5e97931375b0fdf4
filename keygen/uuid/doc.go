// SPDX-License-Identifier: Apache-2.0

// Package uuid makes UUIDs (RFC 9562, GUID) as keys of [16]byte, for BINARY(16)
// columns, and as texts, for CHAR(36) and CHAR(32).
//
// # Which version
//
//   - [V7] is the one for primary keys: its first 48 bits are the time, so new
//     rows go to the end of the index.
//   - [V4] is all chance. It tells nothing, not even when a row was made, and
//     puts each new row on another page of the index.
//   - [V1] and [V6] hold the time in units of 100 ns, for systems that have such
//     keys already; V6 is V1 with the time's high bits first, so that it sorts.
//   - [V3] and [V5] are functions, not generators: one name always gives one
//     UUID. Use V5; V3 is for what was named with it before.
//   - [V2] is a function too, and says why.
//
// All versions may stand in one column: their version digits differ, so they
// never meet.
//
// # Promise
//
// A UUID is unique because of the random bits in it, which come from the system's
// generator for cryptography: 122 in V4, 62 in V7 beside the time to a quarter
// of a microsecond, 47 in V1 and V6, drawn once for each generator, beside the
// time and a counter. No process needs to know of any other. Generators of this
// package wait for nothing, have nothing to close and are safe for concurrent
// use.
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
// A clock that is wrong puts wrong times into ids, and nothing more: V7 goes on
// from its last time, V1 and V6 draw new random bits when they see the clock go
// back. A program that gave github.com/google/uuid a source of randomness of its
// own does not change what is made here.
package uuid
