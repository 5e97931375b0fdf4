// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"errors"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Errors of a migration that users test for.
var (
	// ErrConfig: the configuration cannot work; nothing was touched.
	ErrConfig = errors.New("migrate: configuration")

	// ErrUnsupported: a table or a database cannot be migrated without risk.
	ErrUnsupported = errors.New("migrate: not supported")

	// ErrNotReady: a precondition of the step is not met.
	ErrNotReady = errors.New("migrate: not ready")

	// ErrSession: a connection does not accept or keep a setting.
	ErrSession = errors.New("migrate: a session setting did not hold")

	// ErrOtherServer: connections lead to another server than before.
	ErrOtherServer = errors.New("another server has taken over")

	// ErrAgain marks a state that may have changed at the next attempt.
	ErrAgain = errors.New("changed meanwhile")

	// ErrNoTable is the error for a table that does not exist.
	ErrNoTable = errors.New("there is none of this name")
)

// RefusesValue reports whether the server refused a row because of a value: one that it was
// given, or that it computes in a generated column or an index, or that a CHECK forbids. A
// source may have such a row: it was written under another sql_mode, or for another type of
// ids.
func RefusesValue(err error) bool {
	const dataExceptions = "22"
	return err != nil && (strings.HasPrefix(dialect.SQLState(err), dataExceptions) || strings.Contains(err.Error(), "SQLSTATE "+dataExceptions) ||
		inState(err, "23502", "23514") ||
		IsMySQL(err, "1048", "1264", "1265", "1292", "1364", "1366", "1367", "1406", "1411", "1416", "1690", "3140", "3752", "3819", "4025"))
}
