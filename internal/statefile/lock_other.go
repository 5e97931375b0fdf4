// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package statefile

import (
	"errors"
	"os"
)

// Lock is an error on this system.
func Lock(string) (*os.File, error) {
	return nil, errors.New("this system has no advisory locks that end with the process; use leases")
}
