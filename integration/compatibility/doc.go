// SPDX-License-Identifier: Apache-2.0

// Package compatibility tests that docs/compatibility.md has the versions of the servers and of go.mod
// files. It is in a folder of its own, because jobs of CI's matrix run other versions.
package compatibility
