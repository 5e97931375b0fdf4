// SPDX-License-Identifier: Apache-2.0

// Package layoutfile reads the file of --config: databases, tables with their rules, the
// map of slots, lookups, and how a migration changes ids. Help describes its form.
//
// It promises that a mistake in the file is reported with its place and a remedy before a
// database is opened, that only the databases of the file are opened, and that a Mask
// removes their passwords from messages. Where the map of slots is stored in a database,
// File's Current, Placed and Follow read it from there, not from the file.
package layoutfile
