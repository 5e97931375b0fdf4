// Package sqlxhook inserts rows through sqlx with generated keys, and finds the
// shard of a row. It stands beside sqlx as a layer of functions, where others
// put a hook into the driver: it calls ExecContext or QueryxContext on your
// *sqlx.DB, *sqlx.Tx or *sqlx.Conn and changes nothing about them.
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
// and `gorm:"keygen:order"` say the same; tags that disagree are an error. The
// field need not be the primary key. A key that is set (not zero, not NULL) is
// never overwritten. Maps carry no tags, so their keys are not filled.
//
// The field may be any integer, a string, a [16]byte such as a UUID, a pointer
// to one of these or a sql.Scanner. A string takes the keys of a generator of
// texts, or the digits of an integer id: `keygen:"order,base36,pad=13"`, with
// dec, base36, base62 or crockford. The option hooks is for GORM and changes
// nothing here.
//
// # Promise
//
// A call asks each generator once, for all its rows, and sends nothing but the
// statement, cut into several if it is too large. Either it fails before
// anything is sent, and the rows are as they were, or the ids in the rows are
// the ones that were sent. It never adds a column to a statement: an INSERT
// without the key's column is [ErrKeyColumnMissing].
//
// Statements without managed fields do what they do with sqlx, except where
// sqlx breaks them. SQL is read by a scanner that knows literals and comments,
// so that "12:30:00", 'what?', 'a)b' and ::bigint mean what they say, and
// batches keep what follows their VALUES. One habit ends with that: a colon in a
// literal is no longer doubled.
//
// Columns and arguments keep their order, and the arguments are the fields' own
// values and types, so that go-sqlmock can expect them; keygen.Counting makes
// the keys known. A handle that wraps one of sqlx's must not use the arguments
// after its method has returned, as they lie in the rows.
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
