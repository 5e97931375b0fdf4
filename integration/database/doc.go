// SPDX-License-Identifier: Apache-2.0

// Package database opens databases for tests on the servers of package server, and
// runs statements on them. An error of the database fails the test.
package database
