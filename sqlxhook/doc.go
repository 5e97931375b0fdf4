// SPDX-License-Identifier: Apache-2.0

// Package sqlxhook inserts rows through sqlx with generated keys. It stands beside
// sqlx as a layer of functions, where others put a hook into the driver: it calls
// ExecContext or QueryxContext on your *sqlx.DB, *sqlx.Tx or *sqlx.Conn and changes
// nothing about them.
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
// Where rows lie is no business of this package: the databases of a
// [sharding.Router] are one *sqlx.DB, with all methods of sqlx's, and logical names.
//
//	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: home}), "mysql")
//	h, err := sqlxhook.New(sqlxhook.Config{Generators: ids, Router: router})
//	res, err := h.Insert(ctx, db, "orders", &orders) // each row to its shard
//	err = db.SelectContext(ctx, &orders, "SELECT * FROM orders WHERE user_id = ?", userID)
//	tx, err := db.BeginTxx(ctx, nil)                 // on the database of its first statement
//
// Package shardsql says which statements one shard answers, which several do, and
// which are refused with a [sharding.RouteError] before anything is sent. What a
// statement does not say stands in its context: sharding.OnKey and On choose a shard,
// AllShards allows all of them, and Unsharded takes names as they are. One hook serves
// the routed database, a plain one, and what wraps either.
//
// With Config.Router, ids lead to their row's shard by themselves when their generator
// is a [keygen.Bucketed] and their column is in [sharding.Table].Also: they are made
// with the slot of the row's sharding key, which has to be a field of the struct. A
// batch is one statement as long as it has the size for it, whatever the number of its
// shards: those of one database write it in one transaction, and several databases
// only where the router allows [sharding.BestEffort].
//
// # While a table is migrated
//
// With a [sharding.Migration] in the router, the column that the source numbers is sent
// as NULL when it is empty, and the number is stored in the row afterwards; a batch of
// such rows is sent row by row, in one transaction, as no database tells all numbers of
// a batch for certain. Upserts leave the field empty. From the switch on generators
// fill it: a statement that the switch has overtaken is refused with
// [sharding.ErrNotNumbered], and then filled and sent again; one that a rollback to a
// source that numbers again has overtaken loses its ids. One that finds its table
// closed waits for the next place; in a transaction that has done something it fails
// with [sharding.ErrRouteMoved]: roll back and run the transaction again. [Hook.Fill]
// fills whatever the route, as it does not know the table.
//
// # Failure modes
//
// Errors wrap the sentinels of this package, keygen's (a generator that fails
// means that nothing was sent), or sharding's; a [RowError] names row and
// field, a [PartialError] says how much of a batch was written.
package sqlxhook
