// SPDX-License-Identifier: Apache-2.0

// Package migration is the command migrate: its verbs, from inspect to finalize, and expand,
// over package schema/migrate.
//
// It promises that each verb may be used on any host, and again after whatever ended it; that
// what it refuses or fails with has the exit code of command's table; and that data goes to
// stdout, and what it is doing to stderr.
package migration
