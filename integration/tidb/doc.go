// SPDX-License-Identifier: Apache-2.0

// Package tidb tests on a real TiDB which features work, and that the others are refused. The server
// stores rows in memory instead of TiKV. tidb is a module of its own, which
// `make tidb` runs.
package tidb
