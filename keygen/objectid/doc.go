// SPDX-License-Identifier: Apache-2.0

// Package objectid makes MongoDB's ObjectIds as keys: 12 bytes, for BINARY(12)
// columns, or 24 hexadecimal digits, for CHAR(24).
//
//	| 4 bytes                     | 5 bytes              | 3 bytes |
//	| seconds since 1970, to 2106 | random, of a process | counter |
//
// All bytes are big-endian. Older drivers put three bytes of the host name's MD5
// and two of the process id in the place of the random bytes. Such ids are read like
// any other, and a new id equals one of them with no higher probability than it equals
// another new id.
//
// # Promise
//
// A generator never makes an id twice, however many it makes in a second and
// whatever the clock does. The random bytes and the counter are one number of 64 bits,
// and each id takes the next number. When the three bytes of the counter overflow, they
// carry into the five. (A driver begins at 0 again, so it repeats ids from the
// 16,777,217th of a second on.) Ids of several generators and processes are unique because
// each generator begins at a random number: two that make ten thousand ids in the same
// second make an equal one with a probability of one in 10^15. A copy of a running process, with
// its virtual machine say, has the same number and repeats ids: restart it first.
//
// Successive ids of a generator rise as long as the clock is not set back. Ids of all
// processes rise from second to second. Generators never wait, need not be closed and are
// safe for concurrent use.
//
// # Failure modes
//
// A wrong clock puts wrong times into ids and does no other harm. A clock
// before 1970 is [keygen.ErrClockRollback], one after 2106 [keygen.ErrExpired].
//
// MongoDB's own package for these ids imports all of BSON; this package avoids that
// dependency.
package objectid
