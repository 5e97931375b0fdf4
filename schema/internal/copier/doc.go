// SPDX-License-Identifier: Apache-2.0

// Package copier copies tables to their shards while others write to them.
//
// A [Copier] takes a table in chunks of keys, several at a time: [Copier.Copy]. Each chunk
// is read, sorted by shard and stored by package transfer. [Copier.Prune] removes what a
// run that ended in the middle has left, before anything is copied. A [Course] is the
// copy of one table for those who read the chunks by themselves.
//
// # Promise
//
// A bound is written down before any row below it is read, and low only after all rows
// below it are stored, so that whoever follows changes knows which rows have been read
// at some moment; package proto has a model of it. A chunk that was read twice is stored
// once. The goroutines of Copy end before it returns.
package copier
