// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// VitessAdoption returns the files that turn the live tables of a router on MySQL into those of
// Vitess in place, without a copy: for each database the RENAME TABLE statements (adopt.NAME.sql)
// and those that revert them (adopt.NAME.undo.sql), one unmanaged vttablet for each shard
// (vttablets.sh), and apply.sh, which executes all of them. They complement the files of [Vitess].
//
// databases maps each of the router's databases to its name on its server. A shard of Vitess is a
// separate database there, in which the tables have their logical names; broadcast tables get a
// copy in each. A database of the router that already has this form is not changed, keeps its name,
// and has no such files.
//
// A layout is refused with a [RefusedError] if tables would have to be split or moved to another
// server: a physical table must belong to one shard only, and all tables of a shard must be in the
// same database.
func VitessAdoption(r *sharding.Router, c VitessConfig, databases map[string]string) (Export, error) {
	k, err := newKeyspace(r, c)
	if err != nil {
		return Export{}, err
	}
	a := adoption{keyspace: k.config.Keyspace, broadcasts: r.Broadcasts(), from: databases, moves: map[string][]move{}}
	for _, s := range shards(k.ranges) {
		err = errors.Join(err, a.add(s))
	}
	if err = errors.Join(err, a.whole()); err != nil {
		return Export{}, err
	}
	a.leaveInPlace()
	var out Export
	for _, db := range a.databases() {
		out.Files = append(out.Files, File{"adopt." + db + ".sql", a.adopt(db)}, File{"adopt." + db + ".undo.sql", a.undo(db)})
	}
	out.Files = append(out.Files, File{"vttablets.sh", a.vttablets()}, File{"apply.sh", a.apply()})
	out.Notes = a.notes()
	return out, nil
}

func (a *adoption) notes() []string {
	const servers = "Adoption needs MySQL 8.0 or newer, on which Vitess runs."
	if len(a.moves) == 0 {
		return []string{servers, "Each shard is already a database with logical names: nothing is renamed, and writers may change to Vitess' address one by one."}
	}
	return []string{
		servers + " RENAME TABLE refuses tables with triggers before it changes anything.",
		"Stop the writers, run apply.sh adopt, and start them again with Vitess' address; apply.sh undo reverts the renames; rows written since stay in the tables.",
	}
}

// adoption is a layout of Vitess over live tables.
type adoption struct {
	keyspace   string
	broadcasts []string
	from       map[string]string // by database of the router, its name on its server
	shards     []placed
	moves      map[string][]move // by database of the router
}

// placed is a shard, the router's database from which it is made, and its own database.
type placed struct{ shard, from, database string }

// move is a physical table with its new database and name.
type move struct{ table, database, logical string }

// plain matches names that a shell and a file system accept without quotes.
var plain = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (a *adoption) add(s shard) error {
	low, high, _ := strings.Cut(s.Name, "-")
	to := placed{shard: s.Name, database: a.keyspace + "_" + orElse(low, "start") + "_" + orElse(high, "end")}
	if err := checkName("Keyspace: the database of shard "+s.Name, to.database); err != nil {
		return err
	}
	for _, logical := range slices.Sorted(maps.Keys(s.Tables)) {
		db, table, _ := strings.Cut(s.Tables[logical], "/")
		if to.from == "" {
			to.from = db
		}
		if to.from != db {
			return &RefusedError{vitess, logical, fmt.Sprintf("in shard %s it is in %s and other tables are in %s, but a shard of Vitess is on one server", s.Name, db, to.from), "distribute the tables over the databases in the same way, or copy them with MoveTables"}
		}
		if !plain.MatchString(db) || a.from[db] == "" {
			return fmt.Errorf("export: adoption: database %q needs a name of letters, digits, _ and -, and a name on its server", db)
		}
		a.moves[db] = append(a.moves[db], move{table, to.database, logical})
	}
	a.shards = append(a.shards, to)
	return nil
}

// whole refuses tables that are in several shards.
func (a *adoption) whole() error {
	seen := map[[2]string]bool{}
	var errs []error
	for _, db := range a.databases() {
		for _, m := range a.moves[db] {
			if seen[[2]string{db, m.table}] {
				errs = append(errs, &RefusedError{vitess, m.logical, fmt.Sprintf("%s/%s would have to be split over several shards, because other tables have more physical tables", db, m.table), "give the tables as many physical tables as the others, or copy them with MoveTables"})
			}
			seen[[2]string{db, m.table}] = true
		}
	}
	return errors.Join(errs...)
}

// leaveInPlace removes the databases that are already shards of Vitess.
func (a *adoption) leaveInPlace() {
	for i, s := range a.shards {
		renamed := func(m move) bool { return m.table != m.logical }
		if len(a.of(s.from)) == 1 && !slices.ContainsFunc(a.moves[s.from], renamed) {
			a.shards[i].database = a.from[s.from]
			delete(a.moves, s.from)
		}
	}
}

func orElse(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

func (a *adoption) databases() []string { return slices.Sorted(maps.Keys(a.moves)) }

// of returns the shards that are made from a database.
func (a *adoption) of(db string) (all []placed) {
	for _, s := range a.shards {
		if s.from == db {
			all = append(all, s)
		}
	}
	return all
}

func named(database, table string) string {
	return dialect.MySQL{}.Quote(database) + "." + dialect.MySQL{}.Quote(table)
}

// renames returns one statement, which a server executes completely or not at all.
func (a *adoption) renames(db string, back bool) string {
	moves := slices.Clone(a.moves[db])
	for _, b := range a.broadcasts {
		moves = append(moves, move{b, a.of(db)[0].database, b})
	}
	var pairs []string
	for _, m := range moves {
		from, to := named(a.from[db], m.table), named(m.database, m.logical)
		if back {
			from, to = to, from
		}
		pairs = append(pairs, from+" TO "+to)
	}
	return "RENAME TABLE\n  " + strings.Join(pairs, ",\n  ") + ";\n"
}

func (a *adoption) adopt(db string) string {
	var text strings.Builder
	text.WriteString("-- Keep the writers stopped from here until they use Vitess' address.\n")
	for _, s := range a.of(db) {
		fmt.Fprintf(&text, "CREATE DATABASE IF NOT EXISTS %s;\n", dialect.MySQL{}.Quote(s.database))
	}
	for _, s := range a.of(db)[1:] {
		for _, b := range a.broadcasts {
			from, to := named(a.from[db], b), named(s.database, b)
			fmt.Fprintf(&text, "CREATE TABLE %s LIKE %s;\nINSERT INTO %[1]s SELECT * FROM %[2]s;\n", to, from) //nolint:unqueryvet // the copy has the same columns
		}
	}
	return text.String() + a.renames(db, false)
}

func (a *adoption) undo(db string) string {
	var text strings.Builder
	text.WriteString("-- Stop the writers and the vttablets first. The databases stay, because Vitess may have created tables there.\n")
	for _, s := range a.of(db)[1:] {
		for _, b := range a.broadcasts {
			fmt.Fprintf(&text, "DROP TABLE IF EXISTS %s;\n", named(s.database, b))
		}
	}
	return text.String() + a.renames(db, true)
}

// variable returns the name of a database as a shell variable.
func variable(db string) string { return strings.ToUpper(strings.ReplaceAll(db, "-", "_")) }

func (a *adoption) vttablets() string {
	var text strings.Builder
	text.WriteString(`#!/bin/sh
# vttablets.sh starts an unmanaged vttablet of Vitess v24 for each shard. TOPOLOGY_FLAGS
# name the topology server, CELL the cell, DB_USER the user of MySQL, whose password
# DB_CREDENTIALS has, in the form of --db-credentials-file. Each database of the
# router has its address in NAME_HOST and NAME_PORT. A vttablet's process id is in
# vttablet.NUMBER.pid, and what it reports in vttablet.NUMBER.log.
set -eu
cd "$(dirname "$0")"
tablet() { # number, shard, database, host, port
	# shellcheck disable=SC2086 # these are several flags
	vttablet $TOPOLOGY_FLAGS --tablet-path "$CELL-$1" --init-keyspace ` + a.keyspace + ` \
		--init-shard "$2" --init-tablet-type replica --init-db-name-override "$3" \
		--unmanaged --db-host "$4" --db-port "$5" --db-credentials-file "$DB_CREDENTIALS" \
		--db-app-user "$DB_USER" --db-dba-user "$DB_USER" --db-repl-user "$DB_USER" \
		--db-filtered-user "$DB_USER" --db-allprivs-user "$DB_USER" --db-appdebug-user "$DB_USER" \
		--port $((15000 + $1)) --grpc-port $((16000 + $1)) --pid-file "vttablet.$1.pid" \
		--service-map grpc-queryservice,grpc-tabletmanager,grpc-updatestream >"vttablet.$1.log" 2>&1 &
}
`)
	for i, s := range a.shards {
		name := variable(s.from)
		fmt.Fprintf(&text, "tablet %d '%s' '%s' \"$%s_HOST\" \"$%[4]s_PORT\"\n", 101+i, s.shard, s.database, name)
	}
	return text.String()
}

// verb is an argument of apply.sh, and its commands.
type verb struct{ word, says, does string }

func (a *adoption) apply() string {
	var settings, words, says, cases strings.Builder
	for _, db := range a.databases() {
		fmt.Fprintf(&settings, ": \"${%s_CNF:?names an option file of the mysql client for %s, with host, port, user and password}\"\n", variable(db), db)
	}
	if settings.Len() > 0 {
		settings.WriteString("run() { \"${MYSQL:-mysql}\" --defaults-extra-file=\"$1\" <\"$2\"; }\n")
	}
	for _, v := range a.verbs() {
		fmt.Fprintf(&words, " %s", v.word)
		fmt.Fprintf(&says, "# apply.sh %s %s\n", v.word, v.says)
		fmt.Fprintf(&cases, "%s)\n%s\t;;\n", v.word, v.does)
	}
	return "#!/bin/sh\n" + says.String() + "set -eu\ncd \"$(dirname \"$0\")\"\n" + settings.String() +
		"case \"${1-}\" in\n" + cases.String() + "*)\n\techo 'Pass one of:" + words.String() + "' >&2\n\texit 2\n\t;;\nesac\n"
}

func (a *adoption) verbs() []verb {
	var adopt, undo, primaries strings.Builder
	back := ""
	for _, db := range a.databases() {
		name := variable(db)
		fmt.Fprintf(&adopt, "\trun \"$%s_CNF\" adopt.%s.sql || {%s\n\t\texit 1\n\t}\n", name, db, back)
		fmt.Fprintf(&undo, "\trun \"$%s_CNF\" adopt.%s.undo.sql\n", name, db)
		back = fmt.Sprintf("\n\t\trun \"$%s_CNF\" adopt.%s.undo.sql", name, db) + back
	}
	for i := range a.shards {
		fmt.Fprintf(&primaries, "\tctl TabletExternallyReparented \"$CELL-%d\"\n", 101+i)
	}
	verbs := []verb{{
		"vitess", "creates the keyspace and starts its vttablets; VTCTLD is the address of vtctld,\n# host:port, and vttablets.sh lists the other variables.",
		`	ctl() { vtctldclient --server "$VTCTLD" "$@"; }
	registered() { [ "$(ctl GetTablets --keyspace ` + a.keyspace + ` | wc -l)" -ge ` + strconv.Itoa(len(a.shards)) + ` ]; }
	# A primary takes part in workflows, as MoveTables is one, only a moment after its first start.
	ready() { ctl GetWorkflows ` + a.keyspace + `; }
	await() {
		tries=60
		until "$@" >/dev/null 2>&1; do
			tries=$((tries - 1))
			[ $tries -gt 0 ] || { echo "The vttablets are not $1 after a minute; see vttablet.*.log" >&2; "$@"; exit 1; }
			sleep 1
		done
	}
	ctl CreateKeyspace --durability-policy=none ` + a.keyspace + `
	ctl ApplyVSchema --vschema-file vschema.json ` + a.keyspace + `
	sh vttablets.sh
	await registered
` + primaries.String() + `	await ready
`,
	}}
	if adopt.Len() == 0 {
		return verbs
	}
	return append([]verb{
		{"adopt", "renames the live tables into the databases of Vitess' shards.", adopt.String()},
		{"undo", "reverts the renames.", undo.String()},
	}, verbs...)
}
