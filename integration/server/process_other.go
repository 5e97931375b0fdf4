// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package server

import "os/exec"

// dieWithParent does nothing: only Linux can be asked for it. Elsewhere a test
// process that is killed leaves its servers running.
func dieWithParent(*exec.Cmd) {}

// killAllIn does nothing: only Linux tells where a process works. Elsewhere the
// processes of a killed PostgreSQL end when they notice that their parent has.
func killAllIn(string) {}
