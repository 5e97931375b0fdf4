// SPDX-License-Identifier: Apache-2.0

// Package shardsuite tests what gormplugin promises about sharded tables, on any two databases. It
// has a test for each kind of statement and each way to give it keys, and one that sharded tables
// return the results of whole tables, or refuse. It is used here and in integration.
package shardsuite
