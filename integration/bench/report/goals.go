// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
)

// goal is the most that a benchmark may take: a ratio to another benchmark in the same
// round or, without to, a value of its own. A benchmark that is only reported has noGoal.
type goal struct {
	what string
	key  key
	to   key
	most float64
}

const nsPerID = "ns/op"

var noGoal = math.Inf(1)

// next is the key of a subject of BenchmarkNext.
func next(subject string, goroutines int) key {
	return key{fmt.Sprintf("Next/%s/goroutines=%d", subject, goroutines), nsPerID}
}

const (
	atomicAdd = "atomic_add"
	clockRead = "time.Since"
)

// A section is a table of goals.
type section struct {
	title, intro string
	unit         string // what the first column of numbers counts
	goals        []goal
}

var sections = []section{
	{
		"Goals of the generators",
		"If a goal lies within the middle half of the rounds, the next run may have another\nresult.",
		"ns for each id", generatorGoals,
	},
	{
		"Goals of metrics",
		`The first row compares an id of a generator whose metrics are read ten times a second, some hundred times
as often as by Prometheus, with an id of an unobserved generator. The second row is the time that observe.Statements
needs for each statement.`,
		"ns", observedGoals,
	},
	{
		"Goals of GORM",
		`The model has six columns. "Filled" rows have a tag, and the plugin sets their key; "preset" rows have
keys and no plugin. Both are measured until the INSERT's text is complete. Rows of the last five lines are stored.
They are compared with rows whose key is AUTO_INCREMENT or BIGSERIAL. Filled rows
go into a table without such a key, and have six parameters instead of five. Before
v1.60.1, modernc.org/sqlite, the driver without cgo, needed a
time to bind parameters that grew with the square of their number.`,
		"ns", gormGoals,
	},
	{
		"Goals of sqlx",
		`sqlxhook is compared with sqlx.Named, with sqlx's NamedExec if rows are
stored (their keys are preset), and with a loop that is written by hand for this
struct. The goals in nanoseconds were set on a machine on which sqlx.Named
takes 840 ns for one row and 190,000 for a thousand.`,
		"ns", sqlxGoals,
	},
	{
		"Goals of sharding",
		`The same 8,000 orders are in one table ("plain"), and in eight tables of two databases.
The statements are a SELECT by key, a SELECT from a table that is not sharded ("home"), and an INSERT of 1,000 rows of one shard,
which is also compared with the same INSERT into that shard's own table ("one shard").
Eight shards answer the last two: the twenty newest orders, and all orders sorted. They are
also compared with the time of one of the eight shards; fewer than eight processors cannot
reach that goal. go-gorm/sharding has its eight tables in one database and refuses statements
without the key. MariaDB and the benchmark share the processors; pools keep eight idle
connections each. On SQLite the goals for single statements are in nanoseconds, below.`,
		"ns", shardingGoals(),
	},
	{
		"What it costs to leave one database",
		`4,000 users are in two databases of one MariaDB server. A user is found by its key, or by address with
a lookup table, which needs one more query. If all tables are in one database, one
statement queries all of them instead. An INSERT with a lookup is a transaction of two INSERTs. The last
two rows are a transaction that changes two users.`,
		"ns", spanningGoals,
	},
	{
		"Goals of the migration",
		`MariaDB servers hold a million rows of about 250 bytes in memory.
shardid copies them to four tables on two servers, with triggers that
record changes, and then compares every row. mysqldump with mysql copies them to
another server; so does mydumper with myloader, with two threads each and files in
memory. INSERT SELECT copies them to another table on the same server. These three compare
no rows. Then a fifth of the rows is changed at once, and shardid follows the changes. The pause is the median
of cutovers and rollbacks without writers.`,
		"ns for each row", migrationGoals,
	},
	{
		"Sharding and migration on PostgreSQL",
		`These are the statements of "Goals of sharding" on PostgreSQL, with pgx, in nanoseconds, and
the migration of "Goals of the migration", in nanoseconds for each row. The migration is compared with pg_dump and psql,
which copy the rows to another server, and with INSERT SELECT, to another table.`,
		"ns", postgresGoals(),
	},
}

// shardingGoals are those of BenchmarkStatements.
func shardingGoals() (all []goal) {
	for _, database := range []string{"SQLite", "MariaDB"} {
		aStatement := map[string]float64{"SQLite": noGoal, "MariaDB": aRoundTrip}[database]
		all = append(all, statementGoals(database+": ", "Statements/"+database+"/", aStatement)...)
	}
	return all
}

// aRoundTrip is the ratio that a statement to a server may reach.
const aRoundTrip = 1.03

// statementGoals are those of the statements on one database.
func statementGoals(title, prefix string, aStatement float64) (all []goal) {
	to := func(what, who string, most float64) {
		name := prefix + underscored(what) + "/"
		all = append(all, goal{title + what, key{name + "shardid", nsPerID}, key{name + underscored(who), nsPerID}, most})
	}
	for _, library := range []string{"database/sql", "sqlx", "gorm"} {
		to(library+", by key", "plain", aStatement)
	}
	to("gorm, by key", "go-gorm/sharding", 1)
	for _, library := range []string{"database/sql", "gorm"} {
		to(library+", home table", "plain", aStatement)
	}
	to("gorm, home table", "go-gorm/sharding", 1)
	for _, library := range []string{"sqlx", "gorm"} {
		to(library+", 1000 rows", "one shard", aRoundTrip)
		to(library+", 1000 rows", "plain", noGoal)
	}
	to("gorm, 1000 rows", "go-gorm/sharding", 1)
	for _, what := range []string{"database/sql, latest 20", "database/sql, 8000 in order"} {
		to(what, "one shard", 1.3)
		to(what, "plain", noGoal)
	}
	to("database/sql, 2000 keys", "plain", noGoal)
	to("gorm, latest 20", "plain", noGoal)
	return all
}

// postgresGoals are those of both on PostgreSQL.
func postgresGoals() []goal {
	const shardid, dump, same = "MigrateOnPostgreSQL/shardid", "MigrateOnPostgreSQL/pg_dump_to_psql", "MigrateOnPostgreSQL/INSERT_SELECT"
	return append(statementGoals("", "StatementsOnPostgreSQL/", aRoundTrip),
		goal{"copy and comparison", key{shardid, nsPerRow}, key{dump, nsPerRow}, noGoal},
		goal{"copy and comparison", key{shardid, nsPerRow}, key{same, nsPerRow}, noGoal},
		goal{"copy alone", key{shardid, "copy-ns/row"}, key{dump, nsPerRow}, noGoal},
		goal{"a change that is followed, ns", key{"MigrateOnPostgreSQL/shardid_follows", nsPerRow}, key{}, noGoal},
		goal{"pause of a switch, ms", key{"MigrateOnPostgreSQL/shardid_follows", "pause-ms"}, key{}, noGoal})
}

var spanningGoals = []goal{
	{"by address, 2 tables of one database", spanning("lookup/by address, 2 tables of one database"), spanning("lookup/by key"), noGoal},
	{"by address, 8 tables of one database", spanning("lookup/by address, 8 tables of one database"), spanning("lookup/by key"), noGoal},
	{"by address, 16 tables of one database", spanning("lookup/by address, 16 tables of one database"), spanning("lookup/by key"), noGoal},
	{"by address, two databases", spanning("lookup/by address, two databases"), spanning("lookup/by key"), noGoal},
	{"INSERT with a lookup", spanning("lookup/INSERT with a lookup"), spanning("lookup/INSERT without a lookup"), noGoal},
	{"transaction on two databases, BestEffort", spanning("transaction/two, BestEffort"), spanning("transaction/one database"), noGoal},
	{"transaction on two databases, Atomic", spanning("transaction/two, Atomic"), spanning("transaction/one database"), noGoal},
}

// spanning is the key of a case of BenchmarkSpanning.
func spanning(what string) key { return key{"Spanning/" + underscored(what), nsPerID} }

const nsPerRow = "ns/row"

var (
	byDump         = key{"Migrate/mysqldump_to_mysql", nsPerRow}
	byMydumper     = key{"Migrate/mydumper_to_myloader", nsPerRow}
	byInsertSelect = key{"Migrate/INSERT_SELECT", nsPerRow}
	followed       = key{"Migrate/shardid_follows", nsPerRow}
	pauseOfSwitch  = key{"Migrate/shardid_follows", "pause-ms"}
)

// The goals are 1.5 and 0.9 times as many rows in a second as mysqldump and INSERT SELECT,
// a copy that is faster than mydumper's, 20,000 changes in a second, and a pause of 100 ms.
var migrationGoals = []goal{
	{"copy and comparison", key{"Migrate/shardid", nsPerRow}, byDump, 1 / 1.5},
	{"copy and comparison", key{"Migrate/shardid", nsPerRow}, byInsertSelect, 1 / 0.9},
	{"copy and comparison", key{"Migrate/shardid", nsPerRow}, byMydumper, 1.25},
	{"copy alone", key{"Migrate/shardid", "copy-ns/row"}, byDump, 1 / 1.5},
	{"copy alone", key{"Migrate/shardid", "copy-ns/row"}, byInsertSelect, 1 / 0.9},
	{"copy alone", key{"Migrate/shardid", "copy-ns/row"}, byMydumper, 1},
	{"a change that is followed, ns", followed, key{}, 50_000},
	{"pause of a switch, ms", pauseOfSwitch, key{}, 100},
	{"memory of the process, MB", key{"Migrate/shardid", "MB"}, key{}, 64},
}

var gormGoals = []goal{
	{"filling of one of 1000 rows, ns", key{"Fill", "ns/row"}, key{}, 7},
	{"allocations for 1000 rows", key{"Fill", allocs}, key{}, 0},
	create("returning", "1"), create("returning", "1000"), create("lastInsertID", "1"), create("lastInsertID", "1000"),
	thousand("sqlite"), thousand("sqlite_with_cgo"), thousand("mariadb"), thousand("mariadb_without_returning"), thousand("postgres"),
}

// create is the goal of what gorm and the plugin do before the database.
func create(path, rows string) goal {
	name := "Create/" + path + "/" + rows + "/"
	return goal{rows + " filled, by " + path, key{name + "filled", nsPerID}, key{name + "preset", nsPerID}, 1.02}
}

// thousand is the goal of 1000 rows stored.
func thousand(database string) goal {
	name := "Gorm1000Rows/" + database + "/"
	return goal{"1000 filled and stored, " + title(database), key{name + "filled", nsPerID}, key{name + "database", nsPerID}, 1}
}

var observedGoals = []goal{
	{"id of a segment, scraped", key{"IDs/scraped_every_100_ms", nsPerID}, key{"IDs/alone", nsPerID}, 1.1},
	{"statement counted, ns", key{"Statement", nsPerID}, key{}, 100},
}

var sqlxGoals = []goal{
	{"text and arguments of one row, ns", key{"Plan/compiled/1", nsPerID}, key{}, 40},
	{"text and arguments of 1000 rows, ns", key{"Plan/compiled/1000", nsPerID}, key{}, 25_000},
	{"text and arguments of one row", key{"Plan/compiled/1", nsPerID}, key{"Plan/byhand/1", nsPerID}, 1},
	{"text and arguments of 1000 rows", key{"Plan/compiled/1000", nsPerID}, key{"Plan/byhand/1000", nsPerID}, 1},
	{"one row, without a database", key{"NamedExec/hook/1", nsPerID}, key{"NamedExec/sqlx/1", nsPerID}, 1},
	{"1000 rows, without a database", key{"NamedExec/hook/1000", nsPerID}, key{"NamedExec/sqlx/1000", nsPerID}, 1},
	{"one row, SQLite", key{"InsertSQLite/hook/1", nsPerID}, key{"InsertSQLite/sqlx/1", nsPerID}, 1},
	{"1000 rows, SQLite", key{"InsertSQLite/hook/1000", nsPerID}, key{"InsertSQLite/sqlx/1000", nsPerID}, 1},
}

var generatorGoals = []goal{
	{"segment", next("segment", 1), next(atomicAdd, 1), 1.2},
	{"segment, through the interface with ctx and error", next("segment_interface", 1), next(atomicAdd, 1), 1.3},
	{"segment, 2 goroutines", next("segment", 2), next(atomicAdd, 2), 1.5},
	{"segment, 8 goroutines", next("segment", 8), next(atomicAdd, 8), 1.5},
	{"segment, `Fill` of 64", next("segment_Fill(64)", 1), next(atomicAdd, 1), 0.25},
	{"segment striped, 2 goroutines", next("segment_striped", 2), next("segment_striped", 1), 0.56},
	{"cached", next("cached", 1), next(atomicAdd, 1), 1.2},
	{"cached, 2 goroutines", next("cached", 2), next(atomicAdd, 2), 1.5},
	{"cached, 8 goroutines", next("cached", 8), next(atomicAdd, 8), 1.5},
	{"cached, `Fill` of 64", next("cached_Fill(64)", 1), next(atomicAdd, 1), 0.25},
	{"snowflake", next("snowflake", 1), next(clockRead, 1), 1.35},
	{"snowflake, 2 goroutines", next("snowflake", 2), next(atomicAdd, 2), 1.5},
	{"snowflake, 8 goroutines", next("snowflake", 8), next(atomicAdd, 8), 1.5},
	{"snowflake with a coarse clock", next("snowflake_coarse", 1), next(atomicAdd, 1), 2.2},
	{"snowflake, `Fill` of 64", next("snowflake_Fill(64)", 1), next(atomicAdd, 1), 0.25},
	{"segment, p99.99 with a database of 5 ms, ns", key{"Latency/segment", "p99.99-ns"}, key{}, 200},
	{"segment, errors while a database of 5 ms is slower than the callers", key{"SlowSource/segment/latency=5ms", "errors"}, key{}, 0},
	{"segment, errors while a database of 30 ms is slower than the callers", key{"SlowSource/segment/latency=30ms", "errors"}, key{}, 0},
}

// reached returns the results of the goal's benchmark in each round: ratios, or
// values if the goal has no other benchmark.
func (r *results) reached(g goal) []float64 {
	if g.to == (key{}) {
		return r.values[g.key]
	}
	return r.ratios(g.key, g.to)
}
