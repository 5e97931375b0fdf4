// Package ticket issues ids from ticket servers, as Flickr did: several
// databases, each with a table Tickets64 of one row, count with the same
// auto_increment_increment and an auto_increment_offset of their own, so that
// two servers make odd and even ids and either may fail.
//
//	CREATE TABLE Tickets64 (
//	  id   BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
//	  stub CHAR(1) NOT NULL UNIQUE
//	) ENGINE=InnoDB;
//	SET GLOBAL auto_increment_increment = 2, GLOBAL auto_increment_offset = 1; -- 2 on the other server
//
// [Table] is the table of one MySQL or MariaDB server, [Generator] goes round
// all of them. Counters of other makes join in when they fulfil [Server]: those of
// package redisgen do, and tinyid's databases (sqlstore.TinyID), each of which counts
// with the same delta and a remainder of its own.
//
// # Promise
//
// No id is issued twice as long as each server keeps what it has committed and
// every client of a server counts as the server is set to. Ids have no order:
// neighbouring ones come from different servers, whose counters drift apart.
//
// # One by one and in spans
//
// A single ticket is the well-known
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a')
//
// with the id in the server's answer, made conditional on the server's
// increment, offset and autocommit, so that each reservation checks them again
// at no cost. A span of n tickets is one ticket and, under LOCK TABLES … WRITE,
// a second row written with the last id of the span, which moves the counter
// beyond it for every client and, as that row is what stays in the table, also
// after a crash. So other programs may go on to draw single tickets from the
// same table at any time. It takes the LOCK TABLES privilege and five round
// trips for any number of ids; Galera clusters do not support it, have them give
// tickets one by one. (A larger increment for a moment instead is forgotten by a
// restart, rows of one REPLACE need not be consecutive, and a ticket that
// stands for a block excludes everybody who takes it for an id.)
//
// # Failure modes
//
// A process that is stopped while it has the lock, or a machine that is gone
// without a word, keeps tickets from others for ten seconds: then the server ends
// its session.
//
// A server whose increment or offset differs from the configured one is refused
// with [NumberingError]: by New when it answers at that time, and otherwise for
// as long as it lasts, while the others go on. It is the server's global setting
// that is compared: another client would follow it.
//
// A server that fails is passed over from the first failure on and comes back by
// itself within a few seconds of its return; what of its ids is in memory is
// issued when no server is left. When there are none, calls wait until their
// context ends, for ten seconds at most, and return [keygen.ErrStarved] with
// what each server said. A server that stops answering, without an error, delays
// a call by 50 ms at most.
//
// The column id may be narrower than a bigint: a table looks once at its type, and a
// server whose column has no room for what is asked is out of service with
// [keygen.ErrExhausted], where a lax sql_mode would cut the number. The last number of
// the column is never given. A type that does not hold every whole number, or an engine
// without transactions (MyISAM), is refused.
//
// A counter that went back, as after a fail-over to a replica that lagged
// behind, is noticed by the processes that saw it further on; the server is then
// out of service there with [keygen.ErrRegressed]. A process started later
// cannot know: raise AUTO_INCREMENT after a fail-over, or set TableConfig.From.
//
// # More servers
//
// [PlanExpansion] goes from one server to two, or from two to four, without a
// row that has to move.
package ticket
