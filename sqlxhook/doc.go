// SPDX-License-Identifier: Apache-2.0

// Package sqlxhook inserts rows through sqlx with generated keys. It is a layer of functions
// beside sqlx, not a hook in the driver: it calls ExecContext or QueryxContext on your *sqlx.DB,
// *sqlx.Tx or *sqlx.Conn and changes nothing about them.
//
//	type Order struct {
//		ID     int64 `db:"id" keygen:"order"`
//		UserID int64 `db:"user_id"`
//	}
//	res, err := h.NamedExec(ctx, tx, `INSERT INTO orders (id, user_id) VALUES (:id, :user_id)`, &orders)
//
// # Tags
//
// The generator with the name order fills a field tagged `keygen:"order"`. The default generator
// fills a field tagged `keygen:""`, and none fills a field tagged `keygen:"-"`. The tags
// `db:"id,keygen=order"` and `gorm:"keygen:order"` mean the same; tags that disagree are an
// error. The field need not be the primary key. A key that is set (not zero, not NULL) is never
// overwritten. Maps have no tags, so their keys are not filled.
//
// The field may be any integer, a string, a type of [16]byte such as a UUID, a pointer to one of
// these, or a sql.Scanner. The drivers of MySQL, MariaDB and SQLite take no plain [16]byte: use
// uuid.Binary of package keygen/uuid, or another driver.Valuer. A string holds the keys of a generator of texts, or the digits of an integer
// id: `keygen:"order,base36,pad=13"`, with dec, base36, base62 or crockford. The option hooks is
// for GORM and has no effect here.
//
// # Promise
//
// A call asks each generator once, for all its rows. It sends the statement and nothing else; a
// statement that is too large is cut into several. A call that fails before it sends anything
// leaves the rows unchanged. Otherwise the ids in the rows are the ids that were sent. This
// package never adds a column to a statement: an INSERT without the key's column fails with
// [ErrKeyColumnMissing].
//
// Statements without managed fields do what they do with sqlx, except where sqlx breaks them.
// The scanner of this package knows literals and comments. It therefore leaves "12:30:00",
// 'what?', 'a)b' and ::bigint as they are, and a batch keeps the text after its VALUES. One rule
// of sqlx ends with that: a colon in a literal must not be doubled.
//
// Columns and arguments keep their order, so go-sqlmock can expect them; keygen.Counting makes
// the keys known. The arguments are copies of the fields with the fields' own types, so a tracer
// can keep them.
//
// # Sharding
//
// This package does not route statements. Package shardsql does: it makes one *sqlx.DB of the
// databases of a [sharding.Router], with all methods of sqlx and with logical table names.
//
//	db := sqlx.NewDb(shardsql.OpenDB(shardsql.Config{Router: router, Home: home}), "mysql")
//	h, err := sqlxhook.New(sqlxhook.Config{Generators: ids, Router: router})
//	res, err := h.Insert(ctx, db, "orders", &orders) // each row to its shard
//	err = db.SelectContext(ctx, &orders, "SELECT * FROM orders WHERE user_id = ?", userID)
//	tx, err := db.BeginTxx(ctx, nil)                 // on the database of its first statement
//
// The documentation of shardsql says which statements run on one shard, which run on several,
// and which are refused with a [sharding.RouteError] before anything is sent. The context can
// carry what the statement does not say: sharding.OnKey and On choose a shard, AllShards allows
// all shards, and Unsharded makes table names physical. One Hook serves the routed database, a
// plain one, and handles that wrap either. Insert on a *sqlx.Conn needs Config.DriverName.
//
// With Config.Router, generated ids lead to the shard of their row. That needs a generator that
// is a [keygen.Bucketed] and a column in [sharding.Table].Also. The ids are made with the slot
// of the row's sharding key, which must be a field of the struct. The number of shards does not
// cut a batch into several calls; only its size does. The shards of one database are written in
// one transaction. Rows for several databases are accepted only if the router allows
// [sharding.Atomic] or [sharding.BestEffort].
//
// # While a table is migrated
//
// With a [sharding.Migration] in the router, the source may number a column. If the column is
// empty, NULL is sent for it, and the number is stored in the row afterwards. No database
// reports the numbers of a batch for certain, so a batch of such rows is sent row by row, in one
// transaction. Upserts leave the field empty.
//
// From the switch on, generators fill the column. The switch may come between the filling of a
// row and its statement. The statement is then refused with [sharding.ErrNotNumbered], filled,
// and sent again. After a rollback to a source that numbers again, a statement that comes too
// late loses its generated ids. A statement that finds its table closed waits until a database
// serves it. In a transaction that has done something it fails with [sharding.ErrRouteMoved]
// instead: roll back and run the transaction again. [Hook.Fill] does not know the table, so it
// fills the keys whichever database serves it.
//
// # Failure modes
//
// Errors wrap the sentinels of this package, of keygen, or of sharding. When a generator fails,
// nothing was sent. A [RowError] names the row and the field. A [PartialError] says how much of
// a batch was written.
package sqlxhook
