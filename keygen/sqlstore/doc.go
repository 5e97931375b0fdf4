// Package sqlstore keeps what generators need to remember in the application's
// own database: segments in leaf_alloc, worker ids in WORKER_NODE. The tables
// are the ones that Leaf and UidGenerator use, and schema.Apply creates them.
//
// # Promise
//
// A segment exists only once its UPDATE has committed, and costs one round
// trip. It is taken on a connection of the pool's own, never inside a
// transaction of the caller's, whose rollback would give the range back. The
// ranges are Leaf's, [old max_id, new max_id), so a tag can be shared with a
// running Leaf.
//
// How durable a range is, is the database's matter: with InnoDB's
// innodb_flush_log_at_trx_commit at 0, or after a fail-over to an asynchronous
// replica, a committed range can be forgotten and given again.
//
// # Failure modes
//
// Reserving from a pool whose only connection is inside the caller's own
// transaction waits for it until the context ends: give the store a *sql.DB of
// its own, or enough connections. Errors of the database are returned wrapped;
// a tag without a row is [keygen.ErrUnknownTag].
package sqlstore
