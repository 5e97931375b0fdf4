// Package sharding says where a row lives: it turns a sharding key into the
// database and the physical table that hold the row. It knows neither SQL nor
// an ORM; gormplugin and sqlxhook are adapters on top of it.
//
// # Promise
//
// The same key always leads to the same [Target], whatever Go type carries it:
// int64(5), uint32(5), a named integer, "5" and []byte("5") agree. A key that
// cannot be placed with certainty is an error, never a guess: the package fails
// closed.
//
// # The words
//
//   - The sharding key is the column that decides, as a rule the primary key or
//     the key of the parent row.
//   - A [Rule] turns a key into a [Slot], a logical bucket.
//   - A [Map] turns a slot into a [Target]: one number gives both the database
//     and the table, so every target is reachable. (Taking key % databases and
//     key % tables separately reaches only their least common multiple.)
//   - A [Router] holds the rule and the map of every sharded table (分库分表).
//
// # Failure modes
//
// [New] reports all mistakes of a configuration at once. After that the only
// errors are [RouteError]s, each of which names the table and the column and
// says what to do. A Router is immutable and safe for concurrent use; it keeps
// the *sql.DBs it was given and neither opens nor closes them.
package sharding
