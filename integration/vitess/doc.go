// SPDX-License-Identifier: Apache-2.0

// Package vitess tests the exports of sharding/export with Vitess v24.0.0: with the code of its
// VSchema reader, vindexes and key ranges, and with its servers on MySQL,
// which .ci/install-built builds. It is a module of its own, so that
// only these tests compile Vitess. `make lanes` runs it. The tests run the commands of
// docs/to-vitess.md. They need ports 15100 to 15104 and 16100 to 16104, and
//
//	go test -run TheVectors -update .
//
// writes the vectors that the tests of sharding/export read in every run.
package vitess
