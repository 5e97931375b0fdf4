// SPDX-License-Identifier: Apache-2.0

// Package tidb tests what works on a real TiDB, and that the rest is refused. Its server
// stores in memory what a cluster stores in TiKV. It is a module of its own, which
// `make tidb` runs.
package tidb
