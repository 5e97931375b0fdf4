// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the tests of the structure of the module: which package
// may import what (rules_test.go is the table, with the reason for each rule),
// and that CONTRIBUTING.md says where every package is. It has no code of its own.
//
// The rules are about what users compile, so test files are free to import
// anything. The imports are parsed in this process: the output of `go list`
// would not be part of what the test cache checks for changes.
package archtest
