// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// program is a program of a database server.
type program struct {
	name     string
	dirs     []string // patterns of where it may be beside PATH
	packages string   // Debian's, without a service that would start a server on the machine
}

// find looks in PATH and then in the program's directories, where it takes the
// newest version.
func (p program) find() (string, error) {
	if path, err := exec.LookPath(p.name); err == nil {
		return filepath.Abs(path) // PATH may have relative entries
	}
	for _, dir := range p.dirs {
		found, err := filepath.Glob(filepath.Join(dir, p.name))
		if err != nil {
			panic("bug: " + err.Error()) // only a malformed pattern fails
		}
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(version(b), version(a)) })
		for _, path := range found {
			if path, err := exec.LookPath(path); err == nil { // can be run
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not installed, neither in PATH nor in %s; "+
		"`make test` installs it on Debian and its kin, or do it yourself: apt-get install %s",
		p.name, strings.Join(p.dirs, " or "), p.packages)
}

var number = regexp.MustCompile(`\d+(\.\d+)?`)

// version returns the last number in a path like
// /usr/lib/postgresql/15/bin/postgres, 0 when there is none.
func version(path string) float64 {
	found := number.FindAllString(path, -1)
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(found[len(found)-1], 64) // the pattern is one of numbers
	return n
}
