// SPDX-License-Identifier: Apache-2.0

// Package bench compares the speed of shardid's generators with that of others
// and with the floor that the machine sets, an atomic addition and a reading of
// the clock; its routing with database/sql, sqlx and GORM alone and with
// go-gorm/sharding, before a database and with one; and its migration
// with a dump and with a copy on one server, which -migrate.rows makes longer. All
// of it is benchmarks; `make bench` runs them in turns, ten
// rounds of one binary, and package report makes BENCHMARKS.md of what they
// print.
//
// A benchmark is called by its subject and the number of goroutines that share
// it, as BenchmarkNext/segment/goroutines=8. Its ns/op is time that passed for
// each id, whoever took it: two goroutines that do not disturb each other halve
// it.
package bench
