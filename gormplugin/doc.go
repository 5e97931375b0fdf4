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
// With a Router, a statement on a sharded table goes to the database and the
// physical table of its sharding key. The key must be provable: in the rows of
// a create; in a condition `key = ?` or `key IN ?` that AND joins to the others;
// or in the model together with its primary key. Everything else is refused
// with a [sharding.RouteError] before anything is sent: the package fails
// closed. Refused are statements whose keys lie on several targets, joins and
// subqueries, a change of the key, and every text that names a sharded table,
// be it in Raw, Exec, a version comment or a subquery. (A column or an alias
// named like a sharded table is refused with it.)
//
// A transaction begins with its first statement, on that statement's database,
// and refuses the others. Commit of one that did nothing sends nothing. GORM's
// own transaction around a create thus lands on the right shard, and an order
// and its items are stored together or not at all.
//
// The physical table carries the logical name as its alias, so that qualified
// columns in raw conditions go on working. The one exception is a DELETE with
// ORDER BY, LIMIT or RETURNING on MySQL and MariaDB, which allow no alias there:
// leave the qualifier out of its raw conditions.
//
// Statements on other tables reach the driver as without the plugin.
//
// # Failure modes
//
// When a create fails with the proof that no row was written (it was refused,
// or it was a single row that violates a constraint) its fields are emptied
// again. After any other error, a deadline above all, they keep their ids: the
// row may exist, and a retry with the same id finds out.
//
// With ON CONFLICT DO NOTHING a skipped row keeps the id it was given, which is
// then no row's. GORM saves belongs-to and many-to-many elements in this way.
//
// A child row that associations move to another parent is stored in the new
// parent's shard without being deleted from the old one's; move it yourself.
//
// GORM's PrepareStmt cannot be combined with a Router.
package gormplugin
