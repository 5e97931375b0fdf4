// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the user that runs a server which refuses to run as root. A nil
// account is the user that runs the tests.
type account struct{ uid, gid uint32 }

// account returns the user that runs servers of the kind.
func (k kind) account() (*account, error) {
	if os.Geteuid() != 0 || len(k.users) == 0 {
		return nil, nil
	}
	for _, name := range k.users {
		if found, err := user.Lookup(name); err == nil {
			return newAccount(found)
		}
	}
	return nil, fmt.Errorf("%s does not run as root, and there is no user %s to run it as; add one", k.program.name, strings.Join(k.users, " or "))
}

func newAccount(u *user.User) (*account, error) {
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return &account{uint32(uid), uint32(gid)}, nil
}

// run makes the command run as the account.
func (a *account) run(cmd *exec.Cmd) {
	if a != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.gid}}
	}
}

// takeOver makes the account the owner of a directory and all in it.
func (a *account) takeOver(dir string) error {
	if a == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(a.uid), int(a.gid)) //nolint:gosec // nobody else works in the directory yet
	})
}
