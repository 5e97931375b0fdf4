package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// debianPackages have all that is looked for, without the service that would
// start a server on the machine.
const debianPackages = "mariadb-server-core mariadb-client-core"

// findProgram looks in PATH and in the directories for servers, which are not
// in every user's PATH.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path) // PATH may have relative entries
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed, neither in PATH nor in /usr/sbin or /usr/local/sbin; "+
		"`make test` installs it on Debian and its kin, or do it yourself: apt-get install %s", name, debianPackages)
}

// runAsRoot permits mariadbd to run as root, which it refuses unless told to.
func runAsRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}
