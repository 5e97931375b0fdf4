// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package workerid

import (
	"errors"
	"os"
)

func fileIdentity(*os.File) (string, error) {
	return "", errors.New("LeasedConfig.File needs the boot id of Linux; leave it empty on this system")
}
