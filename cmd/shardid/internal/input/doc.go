// SPDX-License-Identifier: Apache-2.0

// Package input is about what a user gave and has to correct: a file that does
// not exist, an id that is none, a flag with an impossible value. The program
// ends with an exit code of its own for these, and has written nothing.
package input
