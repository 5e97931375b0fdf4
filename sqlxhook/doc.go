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
// Columns and arguments keep their order, and the arguments are copies of the
// fields with their own types, so that go-sqlmock can expect them and a tracer keep
// them; keygen.Counting makes the keys known.
//
// # Sharding
//
// With a router, a statement that names a sharded table is sent with a handle
// that is bound to a shard, and names tables by their logical names:
//
//	shard, err := h.For("orders", userID)                // one database, one table
//	res, err := h.Insert(ctx, shard, "orders", &order)
//	err = shard.SelectContext(ctx, &orders, "SELECT * FROM orders WHERE user_id = ?", userID)
//	tx, err := h.Begin(ctx, "orders", userID)       // a transaction on that database
//	res, err := h.Insert(ctx, h.Shards(), "orders", all) // each row to its shard
//
// [GroupBy] and [GroupKeys] split rows and lists of keys by shard, [Hook.Each] and
// [Collect] go through shards at once. What is not proven to reach the right
// shard is refused with a [sharding.RouteError] before anything is sent:
//
//	the statement                          is refused unless
//	names a sharded table, by any name     it is sent with a Shard, a Tx or Shards, or sharding.Unsharded is set
//	names a table of another shard         the tables are of one Group
//	inserts into a sharded table           it shows the key of each row, as a parameter or literal, and the row belongs there
//	has an id that carries the shard       it agrees with the key ([sharding.Table].Also)
//	sets a column that leads to the shard  never: a row keeps its key
//	is sent with Shards                    it is an INSERT, writes a broadcast table, or a hint chooses the shard
//	has rows for several databases         the router allows sharding.BestEffort
//	writes a broadcast table               it is sent with Shards
//	names a sharded table, and is none of  it is sent with Shard.Unguarded, or sharding.Unsharded is set
//	SELECT, INSERT, REPLACE, UPDATE and
//	DELETE, or more than one statement
//
// Texts are read by their words, not parsed: where a table may stand, a column or
// alias with the name of a sharded table is taken for it in statements that begin
// with WITH. WHERE conditions are not read, as the handle says which shard is
// meant. A bound handle asks no other shard: an UPDATE or DELETE by an id whose row
// lies elsewhere touches 0 rows, and an INSERT or upsert of such an id stores a
// second row. Unique keys, primary ones among them, hold within a table only. Ids
// lead to their row's shard by themselves when their generator is a
// [keygen.Bucketed] and their column is in Also.
//
// What a query builder such as squirrel or goqu writes is sent like any other text,
// with its arguments: SELECT, UPDATE and DELETE by the methods of a [Shard] or a
// [Tx]. Its INSERTs are refused, as their parameters have no names by which rows
// could be looked at: insert structs or maps with [Hook.Insert].
//
// # While a table is migrated
//
// With a [sharding.Migration] in the router, handles lead to the source until its
// switch. What will be refused on the shards is refused there already. The column
// that the source numbers is sent as NULL when it is empty, and the number is
// stored in the row afterwards; a batch of such rows is sent row by row, in one
// transaction, as no database tells all numbers of a batch for certain. Upserts
// leave the field empty.
//
// When the place of a statement is closed by the switch, or by a rollback,
//
//	it was sent with                     then
//	a Shard of For or ForBy              it waits, and is sent again where the table is now
//	Shards                               the same; nothing remains of what was done of a batch
//	a Tx                                 sharding.ErrRouteMoved: roll back and run the transaction again
//	a Shard of At, Each or GroupBy       sharding.ErrRouteMoved: take new targets, or group again
//
// Call [sharding.Router.Load] once when the program starts. [Hook.Fill] fills
// whatever the route, as it does not know the table.
//
// # Failure modes
//
// Errors wrap the sentinels of this package, keygen's (a generator that fails
// means that nothing was sent), or sharding's; a [RowError] names row and
// field, a [PartialError] says how much of a batch was written.
package sqlxhook
