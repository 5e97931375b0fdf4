package zookeeper

import (
	"errors"
	"strings"

	"github.com/shardid/shardid/keygen"
)

// cures say what to do about answers of ZooKeeper that another try gets again. They
// are those of go-zookeeper, whose errors are values of a package that is not
// imported here.
var cures = []struct{ answer, cure string }{
	{"not authenticated", "give who the connection is authenticated as (AddAuth) the ACL rights READ, WRITE, CREATE and DELETE for the znode of the path and those below it, " +
		"and CREATE for the one above it when the path is to be made"},
	{"client authentication failed", "check the scheme and the credentials that AddAuth is given"},
	{"invalid ACL", "check Perms, Scheme and ID of the configured ACL; the scheme auth needs AddAuth before"},
	{"zookeeper is closing", "keep the connection open until its generators are closed"},
}

// explained adds to an error of a Conn what to do, when nothing but doing it helps.
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

// isSetup reports whether err is one that another try meets again.
func isSetup(err error) bool {
	var setup *keygen.SetupError
	return errors.As(err, &setup)
}
