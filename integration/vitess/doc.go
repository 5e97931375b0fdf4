// Package vitess checks the exports of sharding/export against the code of Vitess
// v24.0.0 itself: its reader of VSchemas, its vindexes and its key ranges. It is a
// module of its own, so that nobody else compiles Vitess. `make lanes` runs it, and
//
//	go test -run TheVectors -update .
//
// writes the vectors that the tests of sharding/export read in every run.
package vitess
