// SPDX-License-Identifier: Apache-2.0

// Package migration is the command migrate: its verbs, from inspect to finalize, and expand,
// over package schema/migrate.
//
// It promises that each verb may be used on any host, and repeated after an interruption;
// that errors have the exit codes of package command's table; and that data goes to stdout,
// and progress to stderr.
package migration
