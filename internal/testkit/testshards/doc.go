// SPDX-License-Identifier: Apache-2.0

// Package testshards makes sharded and copied tables in SQLite databases, and checks
// their rows, for the tests of gormplugin and of sqlxhook. It knows neither.
//
// [RouterOf] makes the router of the statements of package corpus. [Layouts] are for tests that exchange maps while statements run, [Copies] for tests
// in which a context ends between COMMITs.
package testshards
