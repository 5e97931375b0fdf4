// SPDX-License-Identifier: Apache-2.0

package openjob

import "errors"

// ErrChanged is that a table is not what it was when the job began, or that the job is
// given another configuration. Package migrate documents it.
var ErrChanged = errors.New("migrate: a table is not what it was when the job began")
