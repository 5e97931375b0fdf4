// SPDX-License-Identifier: Apache-2.0

// Package testshards creates sharded and copied tables in SQLite databases, and checks their rows,
// for the tests of gormplugin and of sqlxhook. It uses neither.
//
// [RouterOf] returns the router of the statements of package corpus. [Layouts] are for tests that
// replace maps while statements run, and [Copies] for tests in which a context ends between
// COMMITs.
package testshards
