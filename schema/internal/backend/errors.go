// SPDX-License-Identifier: Apache-2.0

package backend

import "errors"

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
