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
// With a Router, Use puts the database of package shardsql in the place of the pool that
// gorm was opened with, which stays the home of all tables that the router does not know.
// All that gorm does then happens on one *sql.DB with logical names: its default
// transactions, savepoints, PrepareStmt, Connection and Rows, and what other libraries do
// with the *sql.DB or *sql.Tx behind a *gorm.DB. Package shardsql reads each text and says
// which are answered by one shard, which by several, and which are refused with a
// [sharding.RouteError] before anything is sent. Hints are contexts: sharding.OnKey, On,
// AllShards, Primary and Unsharded say what their names say.
//
// db.DB() returns that *sql.DB. Its limits bound how many statements work at a time;
// Close closes none of the pools behind it, and Stats counts its own connections, which
// cost nothing. SetMaxOpenConns for a database is set on its own pool.
//
// The text in the logger, in ToSQL and in a dry run is the logical one, before names of
// tables are replaced; shardsql.Explain says what each shard gets.
//
// Give the plugin to Use before dbresolver and other plugins that choose connections: the
// databases that dbresolver opens get a router of their own, for which they are home.
//
// # What gorm does not write
//
// gorm names a model's row by its primary key alone. Where that does not lead to the
// shard and the struct has its sharding key, the condition on it is added:
//
//	db.Model(&order).Update("note", "x") // … WHERE id = 5 AND user_id = 2
//
// If that touches fewer rows than it names, the primary keys are looked for on the other
// shards before the answer is given: a row that lies under another key is
// sharding.ErrKeyChange, before Save inserts it again. A key that is the zero value counts
// as absent. Queries get the condition as well, and no look: First(&order) does not find
// an order of user 3 while the struct says user 2.
//
// A relation that has both keys reads and writes in one shard, as gorm sets and compares
// both: `gorm:"foreignKey:OrderID,UserID;references:ID,UserID"`.
//
// Association mode takes children from their parent by setting their foreign key to NULL:
// Clear, Replace and Delete do, and Append to a has-one. Where the foreign key is the
// sharding key, a row without it has no shard, and they are refused
// (sharding.ErrKeyChange). After Unscoped the children are deleted instead:
//
//	db.Model(&user).Association("Orders").Unscoped().Clear()
//
// A child that is to stay goes to another parent by a create there and a delete here.
//
// # Finding a row by its id alone
//
// When orders are sharded by their user, an id leads to no shard, and First(&o, id) asks
// all of them. Name the id in sharding.Table.Also and give it a generator that is a
// keygen.Bucketed, such as a snowflake generator whose layout has a bucket field where the
// rule of Also looks for it: each new row's id then carries the slot of its user (gene
// ids). A generator that cannot do that is refused ([ErrNoBuckets]), and so is a row whose
// own id leads to another slot; [Check] tries it out. Ids from before say nothing, see
// sharding.Alt.
//
// # Upserts
//
// An upsert (that of Save, and of associations, too) must not store a row twice whose
// primary key does not lead to its shard. Rows with ids that were generated just now are
// new; all others are looked for first, see package shardsql.
//
// # Tables that are being migrated
//
// With a sharding.Migration the router knows tables that package schema/migrate is moving
// out of their source. Until the switch the database numbers the column that it numbered
// before, whatever [With] says. From the switch on the table is filled as any other: a
// create that the switch has overtaken is filled and sent again, also after a rollback.
// Call sharding.Router.Load when the program starts.
//
// # Failure modes
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
