// SPDX-License-Identifier: Apache-2.0

// Package gormsuite tests what package gormplugin promises about filling keys, on any database: on
// embedded SQLite in the plugin's tests, and on real servers in the integration tests.
//
// A test's name says what must happen. Databases differ only where [Database] says so.
package gormsuite
