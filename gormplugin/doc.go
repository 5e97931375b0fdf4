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
// as dbresolver.
//
// What is read of a statement is what the database will execute. A key counts
// in the rows of a create; in conditions `key = ?` and `key IN ?`, whose
// ANDs, ORs and parentheses are followed; and in the model together with its
// primary key. Columns that lead to the same slot (sharding.Table.Also) count
// like the key. NOT, ranges, subqueries and whatever is not understood prove
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
//	upsert                | one; never of the key    | as INSERT batch                        | refused                    | every database       | refused unless hinted
//	UPDATE, DELETE        | one                      | per shard, rows added up               | refused                    | every database       | refused unless hinted
//	UPDATE of the key     | to an equal value only   | refused                                | refused                    | -                    | -
//	TRUNCATE, DROP        | refused                  | -                                      | -                          | -                    | refused
//	DDL, Migrate          | all targets by Migrate   | -                                      | -                          | all databases        | refused
//	transaction           | begins on the shard      | refused unless BestEffort              | -                          | -                    | as its shard
//
// Reads without a key go to all shards when sharding.Table.OnMissing or
// sharding.AllShards says so; writes only with sharding.AllShards. One statement
// goes to no more targets than sharding.FanOut allows. It is answered from
// memory: all rows of all shards are read before the first is returned.
//
// Answers of several shards are merged where that is certain to give what one
// table would. ORDER BY must name columns, which need not be selected; texts are
// ordered and grouped by their bytes on SQLite, and on MySQL and MariaDB, whose
// collations are not known here, not at all. What cannot be merged is
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
// sharding.Primary and sharding.Unsharded say what their names say.
//
// The physical table carries the logical name as its alias, so that qualified
// columns in raw conditions go on working. The one exception is a DELETE with
// ORDER BY, LIMIT or RETURNING on MySQL and MariaDB, which allow no alias there:
// leave the qualifier out of its raw conditions.
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
// that the database numbers, whatever [With] says. From the switch on the table
// is filled and routed as any other. Call sharding.Router.Load when the program
// starts.
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
// When a create fails with the proof that no row was written (it was refused,
// its table had moved, or it was a single row that violates a constraint) its
// fields are emptied again. After any other error, a deadline above all, they keep their ids: the
// row may exist, and a retry with the same id finds out.
//
// With ON CONFLICT DO NOTHING a skipped row keeps the id it was given, which is
// then no row's. GORM saves belongs-to and many-to-many elements in this way.
//
// A child row that associations move to another parent is stored in the new
// parent's shard without being deleted from the old one's; move it yourself.
package gormplugin
