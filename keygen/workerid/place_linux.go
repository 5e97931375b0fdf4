package workerid

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// bootID is another one after each start of the machine.
const bootID = "/proc/sys/kernel/random/boot_id"

// place says where and when a file is: a copy of it is another one, and so is the
// same file on a machine that was started anew or is itself a copy.
func place(f *os.File) (string, error) {
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
