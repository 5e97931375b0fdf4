// SPDX-License-Identifier: Apache-2.0

// Package server knows the server and the session on whose settings the meaning of a statement depends: how a text is
// parsed, how numbers are divided, in which time zone and collation values are compared, and in which form the driver
// returns them.
//
// The databases of a router must agree on all of them, because one table would have one value of each. The package
// also finds out whether two pools have one database.
package server
