// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package server

import "os/exec"

// dieWithParent does nothing, because only Linux supports it. On other systems a killed test
// process leaves its servers running.
func dieWithParent(*exec.Cmd) {}

// killAllIn does nothing, because only Linux shows the working directory of processes. On other systems the
// processes of a killed PostgreSQL end after they notice that their parent has ended.
func killAllIn(string) {}

// holdsARun reports whether a file system in memory has room for the files of a run. Only Linux tells it.
func holdsARun(string) bool { return false }

// allIn returns none for the same reason.
func allIn(string) []int { return nil }
