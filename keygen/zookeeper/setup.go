// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"errors"
	"strings"

	"github.com/shardid/shardid/keygen"
)

// cures says what to do about errors of ZooKeeper that a retry cannot cure. The texts are
// go-zookeeper's, whose error values are in a package that is not imported here.
var cures = []struct{ answer, cure string }{
	{"not authenticated", "grant the identity of the connection (AddAuth) the ACL permissions READ, WRITE, CREATE and DELETE for the znode of the path and those below it, " +
		"and CREATE for the one above it if the path does not exist yet"},
	{"client authentication failed", "check the scheme and the credentials in the call of AddAuth"},
	{"invalid ACL", "check Perms, Scheme and ID of the configured ACL; the scheme auth needs AddAuth before"},
	{"zookeeper is closing", "keep the connection open until its generators are closed"},
}

// explained adds to an error of a Conn what to do, if a retry cannot cure it.
func explained(err error) error {
	if err == nil {
		return nil
	}
	for _, c := range cures {
		if strings.Contains(err.Error(), c.answer) {
			return &keygen.SetupError{Err: err, Cure: c.cure}
		}
	}
	return err
}

// isSetup returns true when a retry cannot cure err.
func isSetup(err error) bool {
	var setup *keygen.SetupError
	return errors.As(err, &setup)
}
