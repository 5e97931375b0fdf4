// Package sqlxhook inserts rows through sqlx with generated keys, and finds the
// shard of a row. It stands beside sqlx as a layer of functions, where others
// put a hook into the driver: it calls ExecContext on your *sqlx.DB, *sqlx.Tx
// or *sqlx.Conn and changes nothing about them.
//
//	type Order struct {
//		ID     int64 `db:"id" keygen:"order"`
//		UserID int64 `db:"user_id"`
//	}
//	res, err := h.NamedExec(ctx, tx, `INSERT INTO orders (id, user_id) VALUES (:id, :user_id)`, &orders)
//
// # Tags
//
// A field tagged `keygen:"order"` is filled by the generator called order,
// `keygen:""` by the default one, and `keygen:"-"` never. `db:"id,keygen=order"`
// says the same; two tags that disagree are an error. The field may be any
// integer type, a pointer to one or a sql.Scanner of an int64, and need not be
// the primary key. A key that is set (not zero, not NULL) is never overwritten.
// Maps carry no tags, so their keys are not filled.
//
// # Promise
//
// A call asks each generator once, for all its rows. Either it fails before
// anything is sent, and the rows are as they were, or the ids in the rows are
// the ones that were sent. It never adds a column to a statement: an INSERT
// without the key's column is [ErrKeyColumnMissing]. SQL is read by a scanner
// that knows literals and comments, so that "12:30:00", 'what?', 'a)b' and
// ::bigint mean what they say, and batches keep what follows their VALUES.
//
// # Sharding
//
// With a router, SQL that names a sharded table is refused, as no physical
// table has that name: [Hook.For] and [GroupBy] give the database and the
// physical table. A row inserted into a physical table it does not belong to is
// refused too, as far as the statement shows its key.
//
// # Failure modes
//
// Errors wrap the sentinels of this package, keygen's (a generator that fails
// means that nothing was sent), or sharding's; a [RowError] names row and
// field, a [PartialError] says how much of a batch was written.
package sqlxhook
