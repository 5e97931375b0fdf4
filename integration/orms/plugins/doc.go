// SPDX-License-Identifier: Apache-2.0

// Package plugins tests gorm's plugins and data types on a database that gormplugin routes:
// optimisticlock, soft_delete, datatypes, gormigrate, opentelemetry and prometheus. The same calls must
// get the same answers from shards as from one table, on SQLite, MariaDB, MySQL and PostgreSQL.
package plugins
