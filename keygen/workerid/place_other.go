//go:build !linux

package workerid

import (
	"errors"
	"os"
)

func place(*os.File) (string, error) {
	return "", errors.New("only Linux says when the machine was started; leave LeasedConfig.File empty on this one")
}
