// SPDX-License-Identifier: Apache-2.0

// Package compatibility holds the test that keeps docs/compatibility.md what servers and go.mod
// files say. It is in a folder of its own, as the matrix of CI runs other versions.
package compatibility
