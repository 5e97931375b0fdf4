// SPDX-License-Identifier: Apache-2.0

// Package database opens the databases of tests on servers that package server starts, and
// asks and tells them what tests need. What fails there fails the test.
package database
