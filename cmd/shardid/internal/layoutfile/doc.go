// SPDX-License-Identifier: Apache-2.0

// Package layoutfile reads the file of --config, which says where rows lie: databases,
// tables with their rules, the map of slots, lookups, and what a migration makes of ids.
// Help describes its form.
//
// It promises that a mistake in the file is told with its place and a remedy before a
// database is opened, that nothing but the databases of the file is opened, and that a Mask
// keeps their passwords out of messages. Where the map of slots is stored in a database, File's
// Current, Placed and Follow go by that, and not by the file.
package layoutfile
