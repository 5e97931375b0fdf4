// Package shardsuite is what gormplugin promises about sharded tables, one test
// for each cell of the table in its documentation, on any two databases. It is
// for tests here and in integration.
package shardsuite
