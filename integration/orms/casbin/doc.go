// SPDX-License-Identifier: Apache-2.0

// Package casbin runs casbin's gorm-adapter on a database that gormplugin routes. The
// adapter tells by the type of GORM's pool whether it is in a transaction, and waits for
// itself for ever when the pool is not the *sql.Tx that GORM puts there.
//
// It is a package of its own: the adapter brings a driver of SQLite that has the name of
// the one that the other tests use.
package casbin
