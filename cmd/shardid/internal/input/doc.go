// SPDX-License-Identifier: Apache-2.0

// Package input handles mistakes in the user's input: a file that does not exist, an
// invalid id, a flag with an impossible value. The program ends with its own exit code for
// these, and has written nothing.
package input
