// SPDX-License-Identifier: Apache-2.0

// Package integration tests shardid on real servers. Package server starts and stops
// private servers for the tests. integration is a module of its own, so that its
// dependencies do not reach the builds of users.
//
// This folder tests package shardsql, in one file for each user story. The folder keygen tests ids,
// migrate tests migrations, schema tests tables and key columns; GORM, sqlx and others have folders
// of their names. go test runs folders in parallel.
//
// If a server cannot be started, the test that needs it fails. No test is
// skipped because a program is missing; `make test` installs it.
package integration
