// SPDX-License-Identifier: Apache-2.0

// Package gormplugin adds generated keys and sharded tables to GORM:
//
//	db.Use(gormplugin.New(gormplugin.Config{Generators: …, Router: …}))
//
// # Filling keys
//
// The default generator fills a field with the tag `keygen:""`; the generator called name fills
// one with `keygen:"name"`. This happens in every form of create that takes structs, or maps
// of a model: pointers, slices, arrays, CreateInBatches, Save, FirstOrCreate and associations, each by
// its own model's tag. A field that already has a value keeps it. Unlike a BeforeCreate hook, the
// plugin also works where hooks are skipped. A model's own BeforeCreate runs earlier, and may set
// the field itself.
//
// The tag is the generator's name and its options, separated by commas.
// `keygen:"order,base36,pad=13"` makes texts of ids: dec, base36, base62 or crockford, and pad
// adds leading zeros. The option hooks fills the field before the model's own hooks run, and
// `keygen:"-"` never fills it. The gorm tag may contain the same:
// `gorm:"primaryKey;keygen:order"`.
//
// The plugin draws ids once per statement, before GORM begins its default transaction. It fills
// associations, and rows that hooks add, inside the transaction. There the wait for an id ends
// after five seconds with [ErrInTransaction], because a generator that needs a connection of the same
// pool would wait for itself. Give database-backed generators a *sql.DB of their own.
//
// Never mix generated ids with the database's own on one table. That happens through raw
// INSERTs, through Table("…").Create of maps without a model unless Config.Models registers the table, and through
// Omit of the key. If the column has no default that numbers rows, SQLite stores NULL as such an id, without an error.
//
// # Routing
//
// With a Router, Use replaces the pool that gorm was opened with by the database of package
// shardsql. The former pool remains the home of all tables that the router does not know. All
// work of gorm then goes through one *sql.DB with logical names: transactions, savepoints,
// PrepareStmt, Connection and Rows, and also the work of other libraries on the *sql.DB or
// *sql.Tx of a *gorm.DB. The documentation of package shardsql says which statements one shard
// answers, which several answer, and which are refused with a [sharding.RouteError] before
// anything is sent. Hints are contexts: sharding.OnKey, On, AllShards, Primary and Unsharded.
//
// db.DB() returns that *sql.DB. Its limits bound the number of statements at a time; those of a
// database's own pool bound its connections. Close closes none of the underlying pools, and Stats
// counts its own connections, which are only a few words of memory each. Config.Replicas and
// Config.Observer are those of its shardsql.Config.
//
// The text in the logger, in ToSQL and in a dry run is the logical one, before table names are
// replaced; shardsql.Explain returns the text for each shard.
//
// Call Use with this plugin before dbresolver and other plugins that choose connections, and before
// plugins that give statements a context of their own, such as those that trace. The
// databases that dbresolver opens get their own router, with themselves as home.
//
// # Conditions that the plugin adds
//
// gorm identifies a model's row by its primary key alone. If that does not lead to the shard,
// and the struct has its sharding key, the plugin adds the condition on the sharding key:
//
//	db.Model(&order).Update("note", "x") // … WHERE id = 5 AND user_id = 2
//
// If the statement affects fewer rows than it names, the other shards are searched for them. A row
// with another sharding key is sharding.ErrKeyChange, before Save would insert it a second time. A
// sharding key with the zero value counts as absent, and so does a time that is finer than the precision of
// its rule, because the column has rounded it; on SQLite, every time. Queries get the condition, too, but not the
// search: First(&order) does not find an order of user 3 while the struct says user 2.
//
// A relation that contains both keys reads and writes in one shard, because gorm sets and
// compares both: `gorm:"foreignKey:OrderID,UserID;references:ID,UserID"`. For a relation by the
// parent's id alone, declare the column in sharding.Table.Parents: then Joins stays in one shard, and
// Clear, Delete and Select("Items").Delete find the shard of the children by a search. Preload asks
// all shards.
//
// Clear, Replace and Delete of Association mode, and Append to a has-one, set the foreign key of
// children to NULL. If that is the sharding key, such a row has no shard, and these calls are
// refused (sharding.ErrKeyChange). After Unscoped the children are deleted instead:
//
//	db.Model(&user).Association("Orders").Unscoped().Clear()
//
// To move a child to another parent, create it there and delete it here.
//
// # Finding a row by its id alone
//
// When orders are sharded by their user, First(&o, id) asks all shards, and Delete(&Order{}, id) searches all
// of them for the row before it deletes it. To avoid that, name the id
// in sharding.Table.Also, and give it a keygen.Bucketed, such as a snowflake generator whose layout
// has a bucket field where the rule of Also expects it. Each new row's id then contains the slot of
// its user (基因法). A generator that cannot do that is refused ([ErrNoBuckets]), and so is a row
// whose own id leads to another slot; [Check] tests both. Older ids contain no slot; see
// sharding.Alt.
//
// # Upserts
//
// An upsert, including that of Save and of associations, must not store a row twice whose
// primary key does not lead to its shard. Rows with ids that were generated just now are new.
// Package shardsql searches for all other rows first.
//
// # Rows of associations in broadcast tables
//
// gorm saves the rows of associations in the transaction of their row, also those that exist: Save of
// an order that was read with Preload("Items.Product") writes the products. If products is a
// broadcast table, a write of it goes to every database, so the transaction must be one that may span
// databases (sharding.Atomic or BestEffort). Otherwise leave these rows out. Omit("Tags.*") writes
// the join table and not the tags, and Omit("Product") leaves ProductID as it is:
//
//	db.Omit("Items.Product", "Tags.*").Save(&order)
//	db.Model(&order).Omit("Tags.*").Association("Tags").Append(&tag)
//
// # Tables that are being migrated
//
// With a sharding.Migration the router knows tables that package schema/migrate is moving out
// of their source. Until the switch, the source database numbers the column that it numbered
// before, whatever [With] says. After the switch, the plugin fills the table like any other. A
// create that is under way during the switch, or a rollback of it, is filled and sent again. An update, a
// delete or a query that is under way gets the condition on the sharding keys of its models. Call
// sharding.Router.Load when the program starts.
//
// # Failure modes
//
// When a create fails and the error proves that no row was written, the plugin empties the
// fields again: the statement was refused, its table had moved, or it was a single row that
// violates a constraint. After any other error, such as a deadline, the fields keep their ids,
// because the row may exist; a retry with the same id finds out. GORM's CreatedAt and UpdatedAt
// stay set.
//
// With ON CONFLICT DO NOTHING a skipped row loses its generated id: the field is empty again
// or, where MySQL or MariaDB reports it, has the id of the existing row. GORM saves belongs-to
// and many-to-many elements in this way.
//
// Replace saves the new rows first, for each parent in its own transaction, and then removes
// the others. If the removal is refused, the new rows are already stored: call Replace in a
// transaction.
//
// # SQLite
//
// gorm.io/driver/sqlite works with cgo, and without cgo on modernc.org/sqlite, as
// sqlite.Dialector{DriverName: "sqlite", DSN: …}. github.com/glebarez/sqlite works as well,
// with its own driver. A program cannot use both, because both register the name sqlite.
package gormplugin
