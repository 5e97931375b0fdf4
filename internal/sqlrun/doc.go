// SPDX-License-Identifier: Apache-2.0

// Package sqlrun executes the statements on shardid's own tables: tasks that are retried after
// conflicts with other writers, transactions, and queries. It knows no table.
//
// No call outlasts its context by more than the driver does, and none leaves rows or a transaction
// open.
package sqlrun
