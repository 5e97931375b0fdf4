// SPDX-License-Identifier: Apache-2.0

// Package dialect holds what differs between the databases shardid stores its
// own tables in and inspects: one small file per database.
//
// It promises that every identifier reaches the database either quoted or not
// at all, and that what stands behind the word "MySQL" is asked in one place:
// Detect and Identify tell which product it is, in which cluster, behind which
// proxy; Appliers, what else writes to it. It opens no connection and starts
// nothing.
package dialect
