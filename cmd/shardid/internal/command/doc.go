// SPDX-License-Identifier: Apache-2.0

// Package command has what all commands of shardid share: the refusal of unexpected
// arguments, the errors of flags, the exit codes, and JSON on stdout.
//
// It promises that no message shows a password that was given as an argument or a flag by
// mistake, and that an exit code means the same in every command.
package command
