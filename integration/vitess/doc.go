// SPDX-License-Identifier: Apache-2.0

// Package vitess checks the exports of sharding/export against Vitess v24.0.0: against its
// reader of VSchemas, its vindexes and its key ranges as code, and against its servers,
// which .ci/install-built builds, over MySQL's. It is a module of its own, so that
// nobody else compiles Vitess. `make lanes` runs it; the tests carry out the commands of
// docs/to-vitess.md. They need ports 15100 to 15104 and 16100 to 16104, and
//
//	go test -run TheVectors -update .
//
// writes the vectors that the tests of sharding/export read in every run.
package vitess
