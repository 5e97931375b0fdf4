// SPDX-License-Identifier: Apache-2.0

// Package casbin tests casbin's gorm-adapter on a database that gormplugin routes. The
// adapter detects a transaction by the type of GORM's pool, *sql.Tx. With another type
// in a transaction, it would wait for a lock that it holds itself.
//
// It is a package of its own, because the adapter registers a SQLite driver under the name
// that the other tests use.
package casbin
