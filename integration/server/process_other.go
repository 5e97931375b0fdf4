//go:build !linux

package server

import "os/exec"

// dieWithParent does nothing: only Linux can be asked for it. Elsewhere a test
// process that is killed leaves its servers running.
func dieWithParent(*exec.Cmd) {}
