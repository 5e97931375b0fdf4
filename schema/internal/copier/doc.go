// SPDX-License-Identifier: Apache-2.0

// Package copier copies tables to their shards while others write to them.
//
// A [Copier] copies a table in chunks of keys, several at a time: [Copier.Copy]. Package
// transfer reads each chunk, sorts it by shard and stores it. [Copier.Prune] removes the
// partly copied chunks of an earlier run before anything is copied. A [TableCopy] is the copy
// of one table, for callers that read the chunks themselves.
//
// # Promise
//
// A bound is stored before any row below it is read, and low rises only after all rows
// below it are stored. So the follower of changes knows which rows may have been read;
// package proto has a model of this. A chunk that is read twice is stored once. The
// goroutines of Copy end before it returns.
package copier
