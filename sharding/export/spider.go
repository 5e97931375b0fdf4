// SPDX-License-Identifier: Apache-2.0

package export

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// The system's name, and the hint of its refusals.
const (
	spider   = "spider"
	otherWay = "read its shards one by one, or all through shardsql"
)

// Spider returns the statements with which one MariaDB reads all shards as if each table were one
// (spider.sql, which apply.sh executes), and those that remove them (spider.undo.sql). The shards,
// which must be MariaDB's, do not change. Each table becomes a table of the storage engine Spider
// in a database "shards", with a partition for each physical table; see
// https://mariadb.com/kb/en/spider/. Spider refuses writes through these tables: they are for
// reports.
//
// Spider reads the columns and indexes of the first physical table of each table, and changes
// nothing. It may run concurrently with other callers.
//
// apply.sh reads the address and the user of each database from the environment: EAST_HOST,
// EAST_PORT, EAST_DBNAME, EAST_USER and EAST_PASSWORD for a database named east. So no file
// contains a password.
//
// A table is refused unless MariaDB can partition by its slot: its rule must be low, bits, mod, or
// offset and step, and its key must be an integer. A query on an exported table with a condition on
// the key queries one shard.
func Spider(ctx context.Context, r *sharding.Router) (Export, error) {
	s := &spiderWriter{router: r, servers: databases(r)}
	var errs []error
	for _, l := range layouts(r) {
		errs = append(errs, s.table(ctx, l))
	}
	for _, name := range r.Broadcasts() {
		if len(s.servers) > 0 {
			errs = append(errs, s.broadcast(ctx, name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Export{}, err
	}
	return Export{
		[]File{{"spider.sql", s.create()}, {"spider.undo.sql", s.undo()}, {"apply.sh", s.apply()}},
		[]string{
			"The tables are for reports: Spider refuses writes through them.",
			"The server with Spider must not be a server of the shards, because Spider does not query its own server.",
			"Each shard is read at its own moment: a report that runs while rows are written may see an earlier state of one shard than of another.",
			"Export again after columns were changed, slots were moved or tables were added.",
		},
	}, nil
}

// databases returns the names of the databases that have targets.
func databases(r *sharding.Router) []string {
	var all []string
	for _, t := range r.Tables() {
		for _, at := range t.Map.Targets() {
			if !slices.Contains(all, at.DB) {
				all = append(all, at.DB)
			}
		}
	}
	slices.Sort(all)
	return all
}

// spiderWriter collects the statements.
type spiderWriter struct {
	router  *sharding.Router
	servers []string // names of databases
	tables  strings.Builder
}

// my quotes a name.
func my(name string) string { return dialect.MySQL{}.Quote(name) }

// spiderServer returns the name of a database for the server with Spider.
func spiderServer(db string) string { return "shards_" + db }

func (s *spiderWriter) table(ctx context.Context, l layout) error {
	function, err := l.partition()
	if err != nil {
		return err
	}
	targets := l.distinct()
	columns, err := s.columns(ctx, l.Name, l.Key, targets[0])
	if err != nil {
		return err
	}
	var partitions []string
	for i, at := range targets {
		var slots []string
		for slot, of := range l.targets {
			if of == at {
				slots = append(slots, strconv.Itoa(slot))
			}
		}
		partitions = append(partitions, fmt.Sprintf("  PARTITION p%d VALUES IN (%s) COMMENT = 'srv \"%s\", tbl \"%s\"'", i, strings.Join(slots, ", "), spiderServer(at.DB), at.Table))
	}
	fmt.Fprintf(&s.tables, "CREATE TABLE shards.%s (\n%s\n) ENGINE=SPIDER CHARACTER SET utf8mb4 COMMENT='%s'\nPARTITION BY LIST (%s) (\n%s\n);\n",
		my(l.Name), columns, readOnly, function, strings.Join(partitions, ",\n"))
	return nil
}

// readOnly are Spider's parameters of a table that refuses writes. Spider queries the shards in the
// table's own character set; in the server's, texts of other character sets become "?".
const readOnly = `wrapper "mysql", read_only_mode "1"`

// broadcast declares a broadcast table, which is read from the first database.
func (s *spiderWriter) broadcast(ctx context.Context, name string) error {
	columns, err := s.columns(ctx, name, "", sharding.Target{DB: s.servers[0], Table: name})
	if err != nil {
		return err
	}
	fmt.Fprintf(&s.tables, "CREATE TABLE shards.%s (\n%s\n) ENGINE=SPIDER CHARACTER SET utf8mb4 COMMENT='%s, srv \"%s\", tbl \"%s\"';\n",
		my(name), columns, readOnly, spiderServer(s.servers[0]), name)
	return nil
}

// partition returns the slot of a key, modulo the number of targets, as an expression that MariaDB
// permits in the function of a partition: no shifts, and no masks. Its MOD is negative for negative
// keys.
func (l layout) partition() (string, error) {
	if l.rule.Kind == sharding.KindBits {
		window := l.rule.Shift + bits.Len(uint(len(l.targets)-1))
		if window > 62 {
			return "", l.notSpider("its rule takes the highest bits of the key, which MariaDB's MOD cannot compute")
		}
		return fmt.Sprintf("((%s MOD %d) + %[2]d) MOD %[2]d DIV %[3]d", my(l.Key), uint64(1)<<window, uint64(1)<<l.rule.Shift), nil
	}
	shift, isModulo := l.shift()
	if !isModulo {
		return "", l.notSpider("MariaDB permits no function in PARTITION BY that computes the slots of its rule")
	}
	n := len(l.targets)
	return fmt.Sprintf("((%s MOD %d) + %d) MOD %[2]d", my(l.Key), n, n+shift%n), nil
}

func (l layout) notSpider(reason string) error {
	return &RefusedError{spider, l.Name, reason, otherWay}
}

// columns returns the columns and indexes of a physical table in the form of a CREATE TABLE. Its
// indexes are not unique: a unique one would have to contain the key. The shards enforce
// uniqueness.
func (s *spiderWriter) columns(ctx context.Context, table, key string, at sharding.Target) (string, error) {
	db := s.router.DB(at.DB)
	failed := func(err error) error {
		return fmt.Errorf("export: spider: the columns of %s cannot be read: %w", at, err)
	}
	server, err := dialect.Detect(ctx, db)
	if err != nil {
		return "", failed(err)
	}
	if server.Kind != dialect.KindMariaDB {
		return "", &RefusedError{spider, table, "Spider was tried only with shards on MariaDB, and " + at.DB + " is another database", "read shards on PostgreSQL with `shardid export fdw`"}
	}
	lines, err := texts(ctx, db, spiderColumns, at.Table)
	if err != nil {
		return "", failed(err)
	}
	if len(lines) == 0 {
		return "", &RefusedError{spider, table, at.String() + " does not exist", "create it with `shardid ddl`, and check the others with `shardid doctor`"}
	}
	if key != "" {
		integers, err := texts(ctx, db, "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND DATA_TYPE LIKE '%int'", at.Table)
		if err != nil {
			return "", failed(err)
		}
		if !slices.ContainsFunc(integers, func(name string) bool { return strings.EqualFold(name, key) }) {
			return "", &RefusedError{spider, table, fmt.Sprintf("%s has no integer column %s, and MariaDB partitions by integers only", at, key), otherWay}
		}
	}
	indexes, err := texts(ctx, db, spiderIndexes, at.Table)
	if err != nil {
		return "", failed(err)
	}
	return "  " + strings.Join(append(lines, indexes...), ",\n  "), nil
}

// The columns and indexes of a physical table, as the lines of a CREATE TABLE. Columns are not
// generated and have no defaults there, because nothing is written. Indexes on prefixes of texts
// are omitted.
const (
	spiderColumns = "SELECT CONCAT('`', REPLACE(COLUMN_NAME, '`', '``'), '` ', COLUMN_TYPE," +
		" IF(COLLATION_NAME IS NULL, '', CONCAT(' CHARACTER SET ', CHARACTER_SET_NAME, ' COLLATE ', COLLATION_NAME)), IF(IS_NULLABLE = 'NO', ' NOT NULL', ' NULL'))" +
		" FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION"
	spiderIndexes = "SELECT CONCAT('KEY (', GROUP_CONCAT('`', REPLACE(COLUMN_NAME, '`', '``'), '`' ORDER BY SEQ_IN_INDEX SEPARATOR ', '), ')')" +
		" FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND INDEX_TYPE = 'BTREE'" +
		" GROUP BY INDEX_NAME HAVING MAX(SUB_PART) IS NULL ORDER BY INDEX_NAME = 'PRIMARY' DESC, INDEX_NAME"
)

// texts returns the one column of a query.
func texts(ctx context.Context, db *sql.DB, query, table string) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query, table)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// create creates the servers from the variables that apply.sh sets, and the tables.
func (s *spiderWriter) create() string {
	var out strings.Builder
	out.WriteString("-- apply.sh executes this, and sets the variables.\nCREATE DATABASE shards;\n")
	for _, db := range s.servers {
		own := strings.ToLower(variable(db))
		fmt.Fprintf(&out, "EXECUTE IMMEDIATE CONCAT('CREATE SERVER %s FOREIGN DATA WRAPPER mysql OPTIONS (HOST ', QUOTE(@%s_host), ', PORT ', CAST(@%[2]s_port AS UNSIGNED), ', DATABASE ', QUOTE(@%[2]s_dbname), ', USER ', QUOTE(@%[2]s_user), ', PASSWORD ', QUOTE(@%[2]s_password), ')');\n",
			my(spiderServer(db)), own)
	}
	return out.String() + s.tables.String()
}

// undo drops the tables of Spider; the shards' tables stay.
func (s *spiderWriter) undo() string {
	var out strings.Builder
	out.WriteString("DROP DATABASE IF EXISTS shards;\n")
	for _, db := range s.servers {
		fmt.Fprintf(&out, "DROP SERVER IF EXISTS %s;\n", my(spiderServer(db)))
	}
	return out.String()
}

// apply passes the environment to the server as hexadecimal digits, through a pipe, so that quotes
// and the list of processes do not matter. The general log does not contain them.
func (s *spiderWriter) apply() string {
	var checks, sets strings.Builder
	for _, db := range s.servers {
		for _, option := range []string{"HOST", "PORT", "DBNAME", "USER", "PASSWORD"} {
			name := variable(db) + "_" + option
			form := ":?"
			if option == "PASSWORD" {
				form = "?" // the variable may be empty
			}
			fmt.Fprintf(&checks, ": \"${%s%sis not set}\"\n", name, form)
			fmt.Fprintf(&sets, "\tset_variable %s \"$%s\"\n", strings.ToLower(name), name)
		}
	}
	return `#!/bin/sh
# apply.sh makes the tables of spider.sql. Its arguments are those of the client mariadb for
# a server that has the engine Spider and none of the shards, and for a user who may make
# databases and servers. Where the shards are is in the environment.
set -eu
` + checks.String() + `
set_variable() {
	printf "SET @%s = CONVERT(X'%s' USING utf8mb4);\n" "$1" "$(printf %s "$2" | od -An -v -tx1 | tr -d ' \n')"
}

{
	echo "SET SESSION sql_log_off = ON;"
` + sets.String() + `	cat "$(dirname "$0")/spider.sql"
} | mariadb "$@" --default-character-set=utf8mb4
`
}
