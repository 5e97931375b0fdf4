// SPDX-License-Identifier: Apache-2.0

package workerid

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// bootID is the file with an id that changes with each start of the machine.
const bootID = "/proc/sys/kernel/random/boot_id"

// fileIdentity returns a text that identifies a file and the current run of the machine. It
// differs for a copy of the file, and for the same file after a reboot or on a copy of the
// machine.
func fileIdentity(f *os.File) (string, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("%s has no inode", f.Name())
	}
	return fmt.Sprintf("%s %d:%d", strings.TrimSpace(string(boot)), stat.Dev, stat.Ino), nil
}
