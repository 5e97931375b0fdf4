// SPDX-License-Identifier: Apache-2.0

package archtest

// A rule says what a package of the module may import of the module, and why. A
// path that ends in "/..." stands for the packages below it.
type rule struct {
	path string
	may  []string
	why  string
}

// layers lists the packages from the lowest layer to the highest. A package may import only
// packages that are above it in this list, so that no imports form a circle. A new package needs
// a line here before it builds.
var layers = []rule{
	{"", nil, "it has no code, and says which package does what"},

	// Layer 1: the standard library, and each other where a line says so.
	{"internal/archtest", nil, "it is tests about source text and needs nobody's code"},
	{"internal/dialect", nil, "packages that must not import each other share it, so it imports none of them"},
	{"internal/sqlrun", []string{"internal/dialect"}, "packages that must not import each other share it, so it imports none of them"},
	{"internal/nilness", nil, "it asks one question about a value, whoever has it"},
	{"internal/writehint", nil, "packages that must not import each other share it, so it imports none of them"},
	{"internal/statefile", nil, "packages that must not import each other share it, so it imports none of them"},
	{"internal/sqltext", nil, "packages that must not import each other share it, so it imports none of them"},
	{"internal/testwait", nil, "tests of packages that must not import each other share it, so it imports none of them"},
	{"internal/testkit/tablewalk", []string{"internal/sqltext"}, "it is an oracle for a parser, so it knows none"},
	{"internal/testkit/corpus", []string{"internal/sqltext", "internal/testkit/tablewalk"}, "it reads statements for tests of packages that must not import each other, so it imports none of them"},
	{"internal/testkit/selects", []string{"internal/testkit/corpus"}, "it makes queries for tests of packages that must not import each other, so it imports none of them"},
	{"internal/testkit/changes", nil, "it makes writes for tests of packages that must not import each other, so it imports none of them"},
	{"internal/testkit/evenness", nil, "tests of packages that must not import each other share it, so it imports none of them"},
	{"internal/testkit/effort", nil, "tests of packages that must not import each other share it, so it imports none of them"},
	{"internal/testkit/secondpool", nil, "benchmarks of several modules compare pools with it, so it imports none of them"},

	// Layer 2: the contract, then its leaves, then the store that serves them.
	{"keygen", []string{"internal/nilness"}, "it is the contract that everybody compiles"},
	{"internal/keyfield", []string{"keygen"}, "packages that must not import each other share it, so it imports none of them"},
	{"keygen/internal/spans", contract, "it is the engine of the generators and serves all of them alike"},
	{"keygen/internal/clock", contract, "it tells generators the time and serves all of them alike"},
	{"keygen/internal/firstlease", contract, "it bounds the start of the generators with worker ids and serves all of them alike"},
	{"keygen/segment", leaf("keygen/internal/spans"), whyLeaf},
	{"keygen/cached", leaf("keygen/internal/spans", "keygen/internal/clock", "keygen/internal/firstlease"), whyLeaf},
	{"keygen/objectid", leaf(), whyLeaf},
	{"keygen/snowflake", leaf("keygen/internal/clock", "keygen/internal/firstlease"), whyLeaf},
	{"keygen/ticket", leaf("keygen/segment"), "it is segments of several servers that take turns, and serves whoever counts"},
	{"keygen/periodic", leaf("keygen/segment"), "it is segments that begin at 1 again, and serves whoever counts"},
	{"keygen/uuid", leaf(), whyLeaf},
	{"keygen/workerid", leaf("keygen/internal/clock"), whyLeaf},
	{"keygen/redisgen", leaf("keygen/workerid"), "it is a leaf that gives worker ids, too: who uses one generator compiles no other"},
	{"keygen/zookeeper", leaf("keygen/workerid"), "it is a leaf that gives worker ids, too: who uses one generator compiles no other"},
	{"keygen/keygentest", leaf("keygen/workerid"), "it tests the contract, whoever fulfils it"},
	{"keygen/sqlstore", leaf("keygen/segment", "keygen/workerid"), "it stores what generators need, and routes nothing"},

	// Layer 3.
	{"sharding", contract, "it decides where a key lives, however the key was made and whoever asks"},

	{"internal/sqlparse", []string{"internal/sqltext"}, "it reads text: what a tree proves about a row, and whether there are shards, is the planner's business"},
	{"sharding/internal/merge", nil, "it makes rows of rows, whoever fetched them and whatever chose them"},
	{"sharding/internal/catalog", []string{"sharding/internal/merge"}, "it describes columns, whoever reads them and whatever is asked of them"},
	{"sharding/internal/sqlfunc", []string{"sharding/internal/merge", "internal/sqlparse"}, "it knows functions by their names, wherever they stand"},
	{"sharding/internal/splice", []string{"internal/sqlparse", "internal/sqltext"}, "it replaces text, whatever the text means"},
	{"sharding/internal/proof", []string{"sharding", "sharding/internal/catalog", "internal/sqlparse"}, "it says which slots have rows, whichever statement asks for them"},
	{"sharding/internal/analysis", []string{"sharding", "sharding/internal/catalog", "sharding/internal/sqlfunc", "sharding/internal/proof", "sharding/internal/merge", "internal/sqlparse", "internal/sqltext"}, "it says what is in a statement, and decides nothing about it"},
	{"sharding/internal/combine", []string{"sharding", "sharding/internal/catalog", "sharding/internal/sqlfunc", "sharding/internal/splice", "sharding/internal/proof", "sharding/internal/analysis", "sharding/internal/merge", "internal/sqlparse", "internal/sqltext"}, "it says how results become one, and neither where they come from nor who wants them"},
	{"sharding/internal/flat", []string{"sharding/internal/sqlfunc", "sharding/internal/splice", "sharding/internal/analysis", "internal/sqlparse"}, "it writes one query for another, whatever becomes of its results"},
	{"sharding/internal/plan", []string{"sharding", "sharding/internal/catalog", "sharding/internal/sqlfunc", "sharding/internal/splice", "sharding/internal/proof", "sharding/internal/analysis", "sharding/internal/combine", "sharding/internal/flat", "sharding/internal/merge", "internal/..."}, "it decides about statements, and neither sends them nor knows who asks"},
	{"sharding/internal/effects", []string{"internal/sqlparse", "internal/sqltext"}, "it reads what a text does to its session, whoever has the session"},
	{"sharding/internal/server", []string{"sharding/internal/merge", "internal/dialect", "internal/sqlparse", "internal/sqltext"}, "it knows what statements mean on a server, and sends none of them"},
	{"sharding/internal/resultset", []string{"sharding", "sharding/internal/merge", "internal/dialect"}, "it gives rows to a program as a driver would, whoever sent the query"},
	{"sharding/internal/inner", []string{"sharding/internal/resultset", "internal/dialect"}, "it sends texts on connections, whoever chose them"},
	{"sharding/internal/columns", []string{"sharding", "sharding/internal/catalog", "sharding/internal/merge", "internal/dialect"}, "it reads what the planner must know, and keeps nothing of it"},
	{"sharding/internal/owner", []string{"sharding", "internal/..."}, "it keeps lookup tables, whoever sends its statements and routes them"},
	{"sharding/internal/literal", []string{"sharding/internal/catalog", "sharding/internal/columns", "sharding/internal/plan", "sharding/internal/resultset"}, "it writes values, and neither reads them nor sends the text"},
	{"sharding/internal/xa", []string{"sharding", "internal/..."}, "it ends transactions, whatever was done in them and whoever sends its statements"},
	{"sharding/shardsql", []string{"sharding", "sharding/internal/...", "internal/..."}, "it sends what the planner says, whoever asks through database/sql"},
	{"sharding/lookups", []string{"sharding", "sharding/shardsql", "sharding/internal/owner", "internal/..."}, "it fills and checks lookup tables, whoever keeps them while statements run"},
	{"sharding/compat", []string{"sharding", "keygen", "internal/..."}, "it says in rules of ours what another library was told"},
	{"sharding/export", []string{"sharding", "keygen", "internal/..."}, "it says in other systems' words what the rules say"},
	{"sharding/twophase", []string{"sharding", "sharding/internal/xa", "internal/..."}, "it ends what programs have left, and needs none of them"},
	{"sharding/slotstore", []string{"sharding", "keygen", "internal/..."}, "it keeps maps, and decides nothing about rows"},
	{"internal/keycolumn", []string{"sharding", "internal/dialect"}, "packages that must not import each other ask it, so it imports none of them"},

	// Layer 4.
	{"schema", aboveSharding, whySibling},
	{"schema/internal/proto", nil, "it decides about numbers and phases, which a model can check without a database"},
	{"schema/internal/backend", []string{"sharding", "internal/..."}, "it says to each database in its own words what a migration does, and decides nothing"},
	{"schema/internal/idmap", []string{"schema/internal/backend", "keygen", "internal/..."}, "it knows ids and their counterparts, whoever writes rows with them"},
	{"schema/internal/openjob", []string{"schema/internal/backend", "schema/internal/idmap", "sharding", "internal/..."}, "it knows the tables of a job and where their rows go, whichever stage asks"},
	{"schema/internal/lead", []string{"schema/internal/openjob", "schema/internal/backend", "schema/internal/idmap", "schema/internal/proto", "sharding", "internal/..."}, "it knows who leads and where a job stands, whatever the stages do meanwhile"},
	{"schema/internal/preflight", []string{"schema/internal/lead", "schema/internal/openjob", "schema/internal/backend", "schema/internal/idmap", "sharding", "internal/..."}, "it says what would happen, and starts nothing"},
	{"schema/internal/transfer", []string{"schema/internal/openjob", "schema/internal/backend", "schema/internal/idmap", "schema/internal/proto", "sharding", "internal/..."}, "it moves rows, whichever stage wants them moved and whoever leads"},
	{"schema/internal/copier", []string{"schema/internal/lead", "schema/internal/transfer", "schema/internal/openjob", "schema/internal/backend", "schema/internal/idmap", "schema/internal/proto", "sharding", "internal/..."}, "it copies what is there, whoever follows what changes"},
	{"schema/internal/follow", []string{"schema/internal/lead", "schema/internal/transfer", "schema/internal/openjob", "schema/internal/backend", "schema/internal/idmap", "schema/internal/proto", "sharding", "internal/..."}, "it carries changes, whatever was copied before and whoever switches later"},
	{"schema/internal/verify", []string{"schema/internal/lead", "schema/internal/transfer", "schema/internal/openjob", "schema/internal/backend", "schema/internal/idmap", "schema/internal/proto", "sharding", "internal/..."}, "it compares what others have brought, and trusts none of them"},
	{"schema/internal/cutover", []string{"schema/internal/lead", "schema/internal/follow", "schema/internal/preflight", "schema/internal/openjob", "schema/internal/backend", "schema/internal/idmap", "schema/internal/proto", "sharding", "internal/..."}, "it changes which side serves, whoever has brought the rows there"},
	{"schema/rebalance", []string{"schema", "schema/internal/...", "sharding", "sharding/slotstore", "internal/..."}, "it gives tables more servers, and is a neighbour of a migration on the same ground"},
	{"schema/migrate", []string{"schema", "schema/internal/...", "sharding", "keygen", "internal/..."}, "it moves rows to where the rules say, whoever routes statements later"},
	{"schema/preview", []string{"sharding", "internal/..."}, "it keeps what programs found, whoever migrates"},
	{"schema/throttle", []string{"schema/internal/backend", "internal/..."}, "it says when to rest, whoever copies"},
	{"schema/versions", aboveSharding, whySibling},
	{"gormplugin", append([]string{"sharding/shardsql", "sharding/lookups"}, aboveSharding...), "it fills keys and says what only GORM knows; statements are routed below it"},
	{"sqlxhook", aboveSharding, whySibling},
	{"internal/testkit/testshards", []string{"internal/testkit/corpus", "sharding"}, "it makes the tables for tests of siblings that must not know each other"},
	{"internal/testkit/shapes", []string{"internal/testkit/corpus", "sharding", "sharding/shardsql"}, "it tries statements on shards and whole tables of any database, for tests here and in integration"},
	{"internal/testkit/shardsuite", []string{"gormplugin", "sharding", "keygen", "internal/..."}, "it tests routing on any database, for tests here and in integration"},
	{"internal/testkit/gormsuite", []string{"gormplugin", "keygen", "internal/testwait"}, "it tests gormplugin on any database, for tests here and in integration"},
	{"internal/testkit/gatesuite", []string{"sqlxhook", "schema/migrate", "sharding", "sharding/shardsql", "keygen"}, "it tests sqlxhook during a migration on any database, for tests here and in integration"},

	{"observe", []string{"schema/migrate", "sharding/twophase", "sharding/shardsql", "sharding", "keygen", "internal/..."}, "it says how things are, whoever wants to know: who shows metrics to one system compiles no other"},
	{"observe/statuspage", []string{"observe", "keygen/sqlstore", "schema/migrate", "sharding", "keygen", "internal/..."}, "it shows what others say, and is one way of many to look at it"},

	// Layer 5.
	{"cmd/shardid", []string{"..."}, ""},
	{"cmd/shardid/...", []string{"..."}, ""},
}

var (
	contract      = []string{"keygen", "internal/..."}
	aboveSharding = []string{"sharding", "keygen", "internal/..."}
)

const (
	whyLeaf    = "it is a leaf: who uses one generator compiles no other"
	whySibling = "its siblings are alternatives: who uses one compiles none of the others"
)

// leaf is what a generator's package may import, besides the others given.
func leaf(others ...string) []string { return append(others, contract...) }

// A dependency is a family of packages from outside the module that only some packages
// may let in. Packages of the standard library that no dependency names are free.
type dependency struct {
	paths []string
	only  []string
	why   string
}

var dependencies = []dependency{
	{[]string{"gorm.io/..."}, []string{"gormplugin", "internal/testkit/gormsuite", "internal/testkit/shardsuite", "cmd/..."}, "users without GORM must not compile it"},
	{[]string{"github.com/jmoiron/sqlx", "github.com/jmoiron/sqlx/..."}, []string{"sqlxhook", "internal/testkit/gatesuite", "cmd/..."}, "users without sqlx must not compile it"},
	{
		[]string{"modernc.org/...", "github.com/go-sql-driver/mysql", "github.com/mattn/go-sqlite3", "github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/..."},
		[]string{"cmd/..."},
		"the driver is the user's choice; a library takes a *sql.DB",
	},
	{[]string{"testing", "testing/..."}, []string{"keygen/keygentest", "internal/testkit/...", "internal/testwait"}, "it would add its flags to the users' programs"},
	{[]string{"unsafe"}, nil, "what it saves cannot be measured behind a database"},
	{[]string{"github.com/google/uuid"}, []string{"keygen/uuid", "cmd/..."}, "users without UUID keys must not compile it"},
	{[]string{"github.com/pressly/goose/v3", "github.com/pressly/goose/v3/..."}, []string{"schema/versions", "cmd/..."}, "users without versioned DDL must not compile it"},
	// The last one is for every module not named above.
	{[]string{anyModule}, []string{"cmd/..."}, "a dependency here becomes one of every user; name it in internal/archtest if it is worth that"},
}

// anyModule stands for every package outside both the module and the standard
// library.
const anyModule = "any module"
