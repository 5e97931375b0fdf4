// SPDX-License-Identifier: Apache-2.0

package backend

import "errors"

// Errors of a migration that users test for.
var (
	// ErrConfig: the configuration cannot work; nothing was touched.
	ErrConfig = errors.New("migrate: configuration")

	// ErrUnsupported: a table or a database is not what can be migrated without risk.
	ErrUnsupported = errors.New("migrate: not supported")

	// ErrNotReady: a precondition of the step is not met.
	ErrNotReady = errors.New("migrate: not ready")

	// ErrSession: a connection does not take or keep a setting.
	ErrSession = errors.New("migrate: a session setting did not hold")

	// ErrOtherServer: connections lead to another server than before.
	ErrOtherServer = errors.New("another server has taken over")

	// ErrAgain marks what another attempt may find otherwise.
	ErrAgain = errors.New("changed meanwhile")

	// ErrNoTable is a table's that is not there.
	ErrNoTable = errors.New("there is none of this name")
)
