// SPDX-License-Identifier: Apache-2.0

// Package orms runs other libraries on the databases of a router, which package
// shardsql offers them as one *sql.DB: sqlc, ent, bun and xorm, and casbin below. One program runs over
// each of them, on SQLite, MariaDB and MySQL, with shards and with one table, and has to
// get the same answers; docs/other-libraries.md shows how each is opened.
//
// It is a module of its own, so that those libraries reach neither the builds of users
// nor those of the other tests.
package orms
