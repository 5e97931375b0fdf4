// Package rebalance gives a sharded table more servers while applications go on
// writing.
//
// [PlanExpansion] is for tables that servers number by AUTO_INCREMENT: one master
// becomes two, N become 2N, and no row moves. It computes the id from which on the
// servers number in a new [Class], and lists what is to be done where and in which
// order; [Expansion.Apply] sends the statements, and [CheckExpansion] tells whether all
// servers can be trusted with the new epoch. [FindStrays] counts ids that are not of
// their class, also where old connections and a generator take one class each.
//
// Slots of rows that move from one server to another are moved by the Mover of package
// schema/migrate.
//
// # Promise
//
// No id is given twice when the steps are done in their order, and nothing is changed
// by planning or checking. It works with database/sql on MySQL and MariaDB. All
// functions are safe for concurrent use.
package rebalance
