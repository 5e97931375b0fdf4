// SPDX-License-Identifier: Apache-2.0

// Package objectid makes MongoDB's ObjectIds as keys: 12 bytes, for BINARY(12)
// columns, or 24 hexadecimal digits, for CHAR(24).
//
//	| 4 bytes                     | 5 bytes              | 3 bytes |
//	| seconds since 1970, to 2106 | random, of a process | counter |
//
// All bytes are big-endian. Older drivers put three bytes of the host name's MD5
// and two of the process id where the random bytes are; such ids are read like
// any other, and new ones never meet them but by the chance with which they meet
// each other.
//
// # Promise
//
// A generator never makes an id twice, however many it makes in a second and
// whatever the clock does: the random bytes and the counter are one number of 64
// bits, of which each id takes the next. When the three bytes of the counter
// overflow they carry into the five; a driver begins again at 0 there, and so
// repeats ids from the 16,777,217th of a second on. Ids of several generators,
// and processes, are unique because each begins at a random number: two that make
// ten thousand ids in the same second meet with a chance of one in 10^15.
//
// Ids that are taken one after the other rise as long as the clock is not set
// back, and those of all processes rise by the second. Generators wait for
// nothing, have nothing to close and are safe for concurrent use.
//
// # Failure modes
//
// A clock that is wrong puts wrong times into ids, and nothing more. A clock
// before 1970 is [keygen.ErrClockRollback], one after 2106 [keygen.ErrExpired].
//
// The driver's own package for these ids brings all of BSON with it, so that the
// few lines which make them stand here.
package objectid
