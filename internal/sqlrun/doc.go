// SPDX-License-Identifier: Apache-2.0

// Package sqlrun runs what shardid's own tables need on a database: a task that
// gives way to other writers, a transaction, a query. It knows no table.
//
// It promises that nothing outlasts its context by more than the driver does, and
// that no row set or transaction is left open.
package sqlrun
