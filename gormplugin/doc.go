// Package gormplugin gives GORM generated keys and sharded tables:
//
//	db.Use(gormplugin.New(gormplugin.Config{Generators: …, Router: …}))
//
// # Filling keys
//
// A field with the tag `keygen:""` is filled by the default generator, one with
// `keygen:"name"` by the generator of that name, in every form of create that
// takes structs or a single map: pointers, slices, arrays, CreateInBatches,
// Save, FirstOrCreate and associations, each by its own model's tag. A value
// that is there already is kept. It is what people look for as a BeforeCreate
// plugin, but it also runs where hooks are skipped; a model's own BeforeCreate
// runs earlier, sees the field empty, and has the last word when it sets it.
//
// The tag is the generator's name and its options, separated by commas:
// `keygen:"order,base36,pad=13"` makes texts of ids (dec, base36, base62 or
// crockford; pad fills them up with zeros), hooks fills the field before the
// model's own hooks run, and `keygen:"-"` never fills it. The same may stand in
// the gorm tag, as `gorm:"primaryKey;keygen:order"`.
//
// Ids are drawn once per statement, before GORM begins its default transaction.
// Associations, and rows that hooks add, are filled inside it: there a
// generator that needs a connection of the same pool can wait for itself until
// the context ends. Give database-backed generators a *sql.DB of their own.
//
// Never mix generated ids with the database's own on one table. That happens
// through raw INSERTs, through Table("…").Create of maps without a model, and
// through Omit of the key.
//
// # Routing
//
// With a Router, a statement on a sharded table goes to exactly the databases
// and physical tables that hold its rows, or it is refused with a
// [sharding.RouteError] that says what to add, before anything is sent: the
// package fails closed. Register it before plugins that choose connections, such
// as dbresolver, and after those that replace gorm's own callbacks, such as caches of
// queries: what these keep is then found by the names of the physical tables, which
// should differ from database to database.
//
// What is read of a statement is what the database will execute. A key counts
// in the rows of a create; in conditions `key = ?` and `key IN ?`, whose
// ANDs, ORs and parentheses are followed; and in the model together with its
// primary key. Columns that lead to the same slot (sharding.Table.Also) count
// like the key, in the model those of the primary key. NOT, ranges, subqueries and whatever is not understood prove
// nothing. Raw conditions are put into parentheses, so that an OR in one of them
// cannot reach beyond it.
//
// The table says what becomes of a statement. Each of its cells is a test, on
// SQLite and on two MariaDB servers.
//
//	statement             | key = one slot           | IN, OR = m slots                       | no key                     | broadcast table      | raw, Exec
//	SELECT rows           | one query                | each shard gets its own keys; merged   | refused, or all if allowed | one database         | refused unless hinted
//	COUNT SUM MIN MAX AVG | one                      | combined                               | refused, or all if allowed | one                  | -
//	GROUP BY, DISTINCT    | one                      | combined, or ErrUnmergeable            | refused, or all if allowed | one                  | -
//	Joins, Preload        | within a group           | within a group; Preload by shard       | refused                    | the shard's own copy | refused unless hinted
//	Row, Rows             | one                      | merged                                 | refused                    | one                  | -
//	FOR UPDATE            | one                      | refused unless BestEffort              | refused                    | one                  | -
//	INSERT one            | keys filled, then routed | -                                      | refused, naming the field  | every database       | refused unless hinted
//	INSERT batch          | one                      | one database: one transaction          | refused, naming the row    | every database       | refused unless hinted
//	upsert                | one; see below           | as INSERT batch                        | refused                    | every database       | refused unless hinted
//	UPDATE, DELETE        | one                      | per shard, rows added up               | refused                    | every database       | refused unless hinted
//	UPDATE of the key     | if it keeps its slot     | refused                                | refused                    | -                    | refused
//	TRUNCATE, DROP        | refused                  | -                                      | -                          | -                    | refused
//	DDL, Migrate          | all targets by Migrate   | -                                      | -                          | all databases        | refused
//	transaction           | begins on the shard      | refused unless BestEffort              | -                          | -                    | as its shard
//
// Each shard gets its own keys of a list of parameters, as in `key IN ?`. A list in
// the text itself goes whole to each of its shards, which finds the same rows.
//
// Reads without a key go to all shards when sharding.Table.OnMissing or
// sharding.AllShards says so; writes only with sharding.AllShards. One statement
// goes to no more targets than sharding.FanOut allows. It is answered from
// memory: all rows of all shards are read before the first is returned.
//
// Answers of several shards are merged where that is certain to give what one
// table would. ORDER BY must name columns, which need not be selected; texts are
// ordered and grouped by their bytes on SQLite, unless the table's definition gives
// the column another collation, and on MySQL and MariaDB, whose collations are not
// known here, not at all. What cannot be merged is
// ErrUnmergeable: COUNT(DISTINCT) of other columns than the key, HAVING and LIMIT
// over groups that several shards share, unknown functions, DELETE and UPDATE
// with LIMIT.
//
// A transaction begins with its first statement, on that statement's database,
// and refuses the others. Commit of one that did nothing sends nothing. GORM's
// own transaction around a create thus lands on the right shard, and an order
// and its items are stored together or not at all. With
// sharding.Transactions(sharding.BestEffort) it begins on each database that it
// needs; when one of several COMMITs fails, the error is a
// sharding.PartialCommitError. A write of several tables without a transaction
// gets one.
//
// Hints are contexts: sharding.On and sharding.OnKey choose the shard, of raw
// SQL too, in which only the names of tables are changed; sharding.AllShards,
// sharding.Primary and sharding.Unsharded say what their names say. A statement
// whose own key leads elsewhere than OnKey's is refused. On, which names the very
// target, reads and changes whatever is there, for those who move rows; only new
// rows must belong there.
//
// Raw SQL with such a hint changes sharded tables alone, and no column that leads
// to a shard. The rows of its INSERTs and REPLACEs must be seen to belong there:
// with a list of columns, and a parameter, a whole number or a text for the key.
// No other shard is asked: a raw upsert or REPLACE of an id whose row lies in another
// shard stores a second row, where the model's forms look for it (see upserts below).
// Raw SQL that changes a broadcast table would change one copy, and is refused; an
// UPDATE or a DELETE with sharding.AllShards is run in every database. Raw SQL reads
// the copy in the database that gorm was opened with.
//
// # Finding a row by its id alone
//
// When orders are sharded by their user, an id leads to no shard, and First(&o, id)
// is refused. Name the id in sharding.Table.Also and give it a generator that is a
// keygen.Bucketed, such as a snowflake generator whose layout has a bucket field
// where the rule of Also looks for it: each new row's id then carries the slot of
// its user (gene ids). A generator that cannot do that is refused ([ErrNoBuckets]),
// and so is a row whose own id leads to another slot; [Check] tries it out. Ids
// from before say nothing, see sharding.Alt. Without such ids, sharding.FanOutReads
// asks all shards.
//
// # Keys that change, and upserts
//
// An UPDATE may give the sharding key, or a column of Also, a value of the same
// slot only, which the condition has to prove. An ON CONFLICT update that names
// one of them is refused.
//
// An upsert (that of Save, and of associations, too; ON CONFLICT DO NOTHING, INSERT
// IGNORE and SQLite's INSERT OR REPLACE are ones) must not store a row twice whose
// primary key does not lead to its shard. Rows with ids that were generated just
// now are new. All others are looked for by their primary keys before they are
// sent: in their own shard first, and what is not there in all others, within the
// limits of sharding.FanOut. One that exists under a key of another slot is refused
// with sharding.ErrKeyChange. The look is no lock: two upserts of one new row under
// two keys can still store it twice. None is needed when the sharding key is a part
// of the primary key or of clause.OnConflict.Columns, or a column of Also is and
// the row's value there carries its slot. Any other unique key holds within a table
// only, and so does the primary key for a plain INSERT.
//
// Model(&Order{ID: 5, UserID: 2}).Update and Delete look in the shard of user 2
// only. When order 5 is another user's, they touch 0 rows and are no error: see
// RowsAffected.
//
// The physical table carries the logical name as its alias, or the one that
// Table("orders AS o") gives, so that qualified columns in raw conditions go on
// working. The exceptions are the ON CONFLICT of an INSERT, and on MySQL and MariaDB a
// DELETE with ORDER BY, LIMIT or RETURNING, as they allow no alias there: leave the
// qualifier out.
//
// Statements on other tables reach the driver as without the plugin. With
// PrepareStmt each database has a cache of its own, of 1000 statements unless
// gorm.Config.PrepareStmtMaxSize says otherwise.
//
// # Tables that are being migrated
//
// With a sharding.Migration the router knows tables that package schema/migrate
// is moving out of their source. Until the switch a statement on such a table goes
// to the source as it stands: with any condition, joined with its neighbours, as
// raw SELECT, INSERT, REPLACE, UPDATE or DELETE, and without a key in the column
// that the database numbers, whatever [With] says. It is read there, too, where
// dbresolver has replicas, as these may not know yet that the place is closed. From
// the switch on the table is filled and routed as any other. Call
// sharding.Router.Load when the program starts.
//
// A statement that finds its place closed has done nothing. It waits for the next
// place as long as its context and sharding.Migration.Patience allow, is filled
// and planned anew, and sent again; so is the first statement of a transaction,
// gorm's own among them. A later one gets sharding.ErrRouteMoved: run the
// transaction again.
//
//   - A single statement is sent again; Save's two statements each by itself.
//   - A batch over several shards is rolled back, and sent again as a whole.
//   - Of CreateInBatches and of associations the first statement is sent again,
//     later ones get ErrRouteMoved.
//   - FindInBatches and Preload send each of their queries again by itself; Rows
//     its query, while rows that are open are read to their end.
//   - Raw SQL with On or OnKey is sent again. Other raw SQL is refused with
//     ErrRawTable once the shards serve; a text of several statements, of which a
//     part may have been done, keeps the database's error.
//
// # Failure modes
//
// The error of a shard's database is a [sharding.ShardError]. A read of several
// shards that one of them fails, or that its context ends, has no answer, not even
// in part; the queries to the others are stopped.
//
// When a create fails with the proof that no row was written (it was refused,
// its table had moved, or it was a single row that violates a constraint) its
// fields are emptied again. After any other error, a deadline above all, they keep
// their ids: the row may exist, and a retry with the same id finds out. CreatedAt
// and UpdatedAt, which GORM sets itself, stay set, as after any create that fails.
//
// With ON CONFLICT DO NOTHING a skipped row loses the id that was generated for it:
// the field is empty again, or on MySQL and MariaDB, where they tell it, has the id
// of the row that is there. GORM saves belongs-to and many-to-many elements in this
// way.
//
// A child row that associations would move to a parent in another slot is refused
// with sharding.ErrKeyChange; delete it, and create it anew.
//
// Associations whose rows lie in the shard of their parent: GORM names them by the
// parent's id alone. Where that leads to the shard (the rows are sharded by their
// order_id, or have it in sharding.Table.Also), Preload, Append, Find and Count work
// as usual, and so do Delete, Replace and Clear behind Unscoped, and
// Select("Items").Delete. Without Unscoped these three would set the key of the rows
// to NULL, and are refused; so is Append to a has-one, which is a Replace in GORM.
// Where parent and rows share another key, user_id say, Append works if the new rows
// have it. Everything else is refused unless the context names the shard,
// sharding.OnKey(ctx, "orders", userID); reads may have a condition on the key
// instead, Preload("Items", "user_id = ?", userID). A many-to-many join table may be
// sharded by its parent's id as well; Find and Count, which join it with the table of
// the others, are refused, and Preload is not.
//
// Replace saves the new rows first, for each parent in a transaction of its own, and
// then removes the others. When that is refused, the new rows are stored: call it in
// a transaction.
//
// # SQLite
//
// gorm.io/driver/sqlite works with cgo, and without it over modernc.org/sqlite, as
// sqlite.Dialector{DriverName: "sqlite", DSN: …}. github.com/glebarez/sqlite works as
// well, with a driver of its own: a program cannot have both, as both are called
// sqlite.
package gormplugin
