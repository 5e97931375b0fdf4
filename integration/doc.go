// SPDX-License-Identifier: Apache-2.0

// Package integration is where shardid meets real servers: one test file per
// user story, each run against private database servers that package server
// starts and ends. It is a module of its own so that what only these tests
// need never reaches the builds of users.
//
// Here are the stories of package shardsql. Those of ids are in folder keygen, of migrations
// in migrate, of tables and the columns of keys in schema, of GORM, sqlx and others in folders
// of their names. Folders are tested side by side.
//
// A server that cannot be started fails the test that asked for it. No test is
// skipped because something is missing on the machine; `make test` installs it.
package integration
