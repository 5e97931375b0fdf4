// SPDX-License-Identifier: Apache-2.0

// Package bench compares the speed of shardid with that of other libraries and programs.
// Generators are compared with other generators, an atomic addition and a reading of
// the clock. Routing is compared with plain database/sql, sqlx and GORM and with
// go-gorm/sharding, without and with a database. Migration is compared with a dump and with
// a copy on one server; -migrate.rows sets its size. The package has benchmarks only. `make bench`
// runs them in several rounds, and package report writes BENCHMARKS.md from their output.
//
// The name of a benchmark has its subject and the number of goroutines that share
// the subject, as in BenchmarkNext/segment/goroutines=8. Its ns/op is elapsed time divided by
// the ids of all goroutines, so two goroutines without contention halve it.
package bench
