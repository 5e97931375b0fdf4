// SPDX-License-Identifier: Apache-2.0

// Package ticket issues ids from ticket servers, as Flickr did. Several databases each have a
// table Tickets64 of one row. All count with the same auto_increment_increment, and each with
// its own auto_increment_offset. With two servers one makes odd and the other even ids, and
// either may fail.
//
//	CREATE TABLE Tickets64 (
//	  id   BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
//	  stub CHAR(1) NOT NULL UNIQUE
//	) ENGINE=InnoDB;
//	SET GLOBAL auto_increment_increment = 2, GLOBAL auto_increment_offset = 1; -- 2 on the other server
//
// [Table] is the table of one MySQL or MariaDB server; [Generator] draws from all of them in
// turn. Other counters can take part if they implement [Server]: those of package redisgen do,
// and tinyid's databases (sqlstore.TinyID), which count with a common delta and one remainder
// each.
//
// # Promise
//
// No id is issued twice, provided that each server keeps what it has committed, and that every
// client of a server counts with the server's settings. Ids have no order: successive ids come
// from different servers, whose counters drift apart.
//
// # Single tickets and spans
//
// A single ticket is the well-known statement
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')
//
// with the id in the server's answer. The package makes the statement conditional on the
// server's increment, offset and autocommit, so that each reservation checks them again at no
// cost. To reserve a span of n tickets, the package takes LOCK TABLES … WRITE, draws one
// ticket, and writes a second row with the last id of the span. That moves the counter beyond
// the span for every client, and also after a crash, because the row stays in the table. So
// other programs may draw single tickets from the same table at any time. A span takes the LOCK
// TABLES privilege and five round trips for any number of ids. Galera clusters do not support
// LOCK TABLES; set Step to 1 there, and wsrep_auto_increment_control=OFF, because otherwise a
// member changes its increment whenever a member joins or leaves. (Three other ways do not work: a restart forgets a larger
// increment, the rows of one REPLACE need not be consecutive, and a ticket that stands for a
// block of ids collides with every client that uses it as an id.)
//
// # Failure modes
//
// A process that is stopped while it has the lock, or a machine that disappears, blocks other
// clients for ten seconds: then the server ends its session.
//
// A server whose increment or offset differs from the configured one is refused with
// [NumberingError]. New returns the error if the server answers in time; otherwise the
// generator leaves the server out, as long as its settings differ, and uses the others. The
// package compares the server's global settings, because other clients follow them.
//
// A server that fails is passed over after the first failure, and used again within a few
// seconds of its return. Its ids in memory are issued when no other server is left. When no
// server has ids, calls wait until their context ends, or for ten seconds at most, and return
// [keygen.ErrStarved] with the error of each server. A server that stops answering without an
// error delays a call by 50 ms at most.
//
// The column id may be narrower than a bigint. A Table checks its type once. When the column
// cannot hold the requested numbers, the server is out of service with [keygen.ErrExhausted];
// with a lax sql_mode the server itself would cut the number. The last number of the column is
// never issued. A type that cannot hold every whole number, and an engine without transactions
// (MyISAM), are refused.
//
// When a counter goes back, after a fail-over to a replica that lagged behind say, the
// processes that saw higher ids put the server out of service with [keygen.ErrRegressed]. A
// process that starts later cannot know: raise AUTO_INCREMENT after a fail-over, or set
// TableConfig.From.
//
// # More servers
//
// [PlanExpansion] plans the way from one server to two, or from two to four, without moving any
// row.
package ticket
