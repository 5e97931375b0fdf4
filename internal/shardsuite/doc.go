// Package shardsuite is what gormplugin promises about sharded tables, one test
// for each cell of the table in its documentation, on any two databases. It is
// for tests here and in integration.
//
// [Layouts] are the tables, and the check of their rows, for tests that exchange
// maps while statements run; [Copies] are of a broadcast table, for tests in which a
// context ends.
package shardsuite
