// SPDX-License-Identifier: Apache-2.0

// Package orms tests other libraries on a router's databases, which package
// shardsql opens as one *sql.DB: sqlc, ent, bun, xorm and gorm.io/gen, and also squirrel, goqu, scany, scan,
// golang-migrate and goose; the folder casbin tests casbin, and plugins tests gorm's plugins. One test program uses
// each library on SQLite, MariaDB and MySQL, and ent on PostgreSQL, with shards and with one table, and must
// get the same results. docs/other-libraries.md shows how to open each library.
//
// orms is a module of its own, so that these libraries are not dependencies of users
// nor of the other tests.
package orms
