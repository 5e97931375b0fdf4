// SPDX-License-Identifier: Apache-2.0

package openjob

import "errors"

// ErrChanged says that a table is not the one with which the job began, or that the job has
// another configuration. Package migrate documents it.
var ErrChanged = errors.New("migrate: a table is not what it was when the job began")

// ErrUnclear says that the names of the tables do not show which side has the rows. Package migrate
// documents it.
var ErrUnclear = errors.New("migrate: cannot tell who owns the rows")
