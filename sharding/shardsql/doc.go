// Package shardsql offers the databases of a [sharding.Router] as one
// database/sql database. Applications, GORM, sqlx and whatever else takes a
// *sql.DB send it their statements with logical names; it reads each text, sends
// it where its rows are, and answers as one unsharded database would.
//
// A statement whose conditions lead to one shard goes there as it is written; only
// names of tables are replaced. What cannot be answered as one table would answer
// is refused by a [sharding.RouteError], and nothing is sent.
//
// It is being built: today it routes what leads to one shard, to one database's
// copies of broadcast tables for reading, and home. A statement that several shards
// would have to answer, or whose rows belong to several, is refused. So are the
// Migrations of a router: [OpenDB]'s database does not follow them yet.
//
// The pools behind it stay the caller's: their limits, their metrics, and closing
// them. Closing the database that [OpenDB] returns closes none of them.
package shardsql
