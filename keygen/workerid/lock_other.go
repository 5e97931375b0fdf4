//go:build !unix

package workerid

import (
	"errors"
	"os"
)

func lockFile(string) (*os.File, error) {
	return nil, errors.New("this system has no advisory locks that end with the process; use leases")
}
