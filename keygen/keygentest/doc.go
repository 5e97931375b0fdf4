// Package keygentest holds the conformance suites that every generator, source
// and assigner runs, those of this module and those that users write: what the
// contract of package keygen promises, as tests. It is for tests only.
package keygentest
