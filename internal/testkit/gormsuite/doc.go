// SPDX-License-Identifier: Apache-2.0

// Package gormsuite is the list of what package gormplugin promises about
// filling, as tests that run on any database: on embedded SQLite beside the
// plugin, and on real servers in the integration tests.
//
// It promises that a test's name says what must happen, and that a database
// differs from another one only where [Database] says so.
package gormsuite
