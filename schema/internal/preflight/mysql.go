// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
)

// size reports how much space the shards will need.
func (p serverProbe) size(bytes int64) {
	p.add(Size, Info, fmt.Sprintf("the data and its indexes take %.1f MB", float64(bytes)/1e6),
		"provide as much space on the databases with shards, and some for the log of changes on the source")
}

// mysqlTable checks the definition of a table.
func (p tableProbe) mysqlTable(ctx context.Context) error {
	for _, look := range []func(context.Context) error{p.mysqlColumns, p.mysqlLiterals, p.mysqlValues, p.mysqlCounter, p.mysqlNames, p.mysqlChecks, p.mysqlPartitions, p.mysqlDraft} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return mysqlMembers(ctx, p.probe)
}

// mysqlCounter checks how much of the key's range is used.
func (p tableProbe) mysqlCounter(ctx context.Context) error {
	column, err := dialect.WholeNumbers(ctx, p, dialect.MySQL{}, p.shape.Name, p.shape.Key)
	if err != nil {
		return err
	}
	typ, most := column.Type, cmp.Or(column.Most, math.MaxInt64)
	if most != math.MaxInt64 {
		p.add(NarrowKey, Info, narrowKey(p.shape.Key, typ), narrowFix)
	}
	highest, err := p.Number(ctx, fmt.Sprintf("SELECT MAX(%s) FROM %s", p.Database.Quote(p.shape.Key), p.Database.Quote(p.shape.Name)))
	if used := float64(highest) / float64(most); err == nil && used >= 0.5 {
		p.add(RangeUsed, Warn, fmt.Sprintf("%.0f %% of the range of %s is used", 100*used, typ), "finish the migration before inserts fail")
	}
	return err
}

// mysqlNames finds constraints that would prevent renaming the table in the switch.
func (p tableProbe) mysqlNames(ctx context.Context) error {
	names, err := p.Database.Unclosable(ctx, p.Session, p.shape.Name)
	if err == nil && len(names) > 0 {
		p.add(LongName, Block, fmt.Sprintf("MySQL renames %s along with the table, and those names would be longer than the 64 letters it takes; the table could not become %s", strings.Join(names, ", "), backend.Retired(p.shape.Name)),
			"drop them, and add them with short names of your own")
	}
	return err
}

func (p tableProbe) mysqlChecks(ctx context.Context) error {
	n, err := p.Number(ctx, "SELECT COUNT(*) FROM information_schema.TABLE_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = DATABASE() AND TABLE_NAME = ? AND CONSTRAINT_TYPE = 'CHECK'", p.shape.Name)
	if err == nil && n > 0 {
		p.add(Checks, Info, fmt.Sprintf("it has CHECK constraints (%d), and so will the shards' tables; MariaDB may have older rows that violate them; these are copied unchecked", n), "nothing")
	}
	return err
}

// mysqlPartitions also finds ranges and lists that end: they are of the ids, because a primary key of one column has to be in the
// expression of the partitions.
func (p tableProbe) mysqlPartitions(ctx context.Context) error {
	const of = " FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND PARTITION_NAME IS NOT NULL"
	n, err := p.Number(ctx, "SELECT COUNT(*)"+of, p.shape.Name)
	if err != nil || n == 0 {
		return err
	}
	ends, err := p.Number(ctx, "SELECT COUNT(*) > 0 AND SUM(PARTITION_DESCRIPTION IN ('MAXVALUE', 'DEFAULT')) = 0"+of+" AND (PARTITION_METHOD LIKE 'RANGE%' OR PARTITION_METHOD LIKE 'LIST%')", p.shape.Name)
	if err != nil {
		return err
	}
	message, fix := fmt.Sprintf("it is partitioned (%d); each shard's table gets the same", n), "create the shards' tables by hand if they should be partitioned otherwise, or not at all"
	if ends != 0 {
		message += "; no partition takes all other ids, and generated ids are higher by the margin of seed"
		fix = "add partitions for the ids that generators will make, which a rollback brings back to the source; " + fix
	}
	p.add(Partitions, Warn, message, fix)
	return nil
}

// variables reads the global settings of these names that the server knows.
func (p serverProbe) variables(ctx context.Context, names ...string) (map[string]string, error) {
	values := map[string]string{}
	err := p.Each(ctx, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		values[strings.ToLower(name)] = value
		return err
	}, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "', '")+"')")
	return values, err
}

// mysqlSource checks the server of the source.
func (p serverProbe) mysqlSource(ctx context.Context) error {
	for _, look := range []func(context.Context) error{p.mysqlServer, p.mysqlNumbers, p.otherWriters, p.transactions, p.settings, p.mysqlPrepared, p.mysqlReaders, p.mysqlSize} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p serverProbe) mysqlServer(ctx context.Context) error {
	v, err := p.mysqlLogs(ctx)
	if err != nil {
		return err
	}
	p.inspection.packet, _ = strconv.ParseInt(v["max_allowed_packet"], 10, 64) // the server writes a number
	if !dialect.ParseMode(v["sql_mode"]).Strict {
		p.add(LaxMode, Warn, "the sql_mode is not strict: values that do not fit are truncated without an error", "add STRICT_TRANS_TABLES before the application meets strict shards")
	}
	return p.mysqlPrivileges(ctx, v["log_bin"] == "ON" && v["log_bin_trust_function_creators"] != "ON", sourcePrivileges)
}

// mysqlShard checks the server of a database with shards.
func (p serverProbe) mysqlShard(ctx context.Context) error {
	v, err := p.mysqlLogs(ctx)
	if err != nil {
		return err
	}
	if packet, _ := strconv.ParseInt(v["max_allowed_packet"], 10, 64); packet < p.inspection.packet {
		p.add(PacketSize, Warn, fmt.Sprintf("max_allowed_packet is %d, that of the source %d", packet, p.inspection.packet), "raise it: a long row would not fit into a statement")
	}
	for _, look := range []func(context.Context) error{p.mysqlNumbers, p.settings, p.otherWriters} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return p.mysqlPrivileges(ctx, v["log_bin"] == "ON" && v["log_bin_trust_function_creators"] != "ON", shardPrivileges)
}

// otherWriters finds other writers that change rows, on the source and on the shards.
func (p serverProbe) otherWriters(ctx context.Context) error {
	found, err := p.Database.OtherWriters(ctx, p.Session)
	for _, f := range found {
		if p.Database.Label == "source" {
			p.add(codeOf(f), Block, f.Message, f.Fix)
			continue
		}
		fix := f.Fix + "; it may be done later, but before a rollback, which is refused until then"
		if f.Kind == backend.InCluster {
			fix = "let applications write to this member only: a rollback closes the tables for its writers only, and loses what others write meanwhile"
		}
		p.add(codeOf(f), Warn, f.Message, fix)
	}
	return err
}

func (p serverProbe) mysqlLogs(ctx context.Context) (map[string]string, error) {
	v, err := p.variables(ctx, "log_bin", "log_bin_trust_function_creators", "binlog_format", "sql_mode", "max_allowed_packet",
		"innodb_flush_log_at_trx_commit", "sync_binlog")
	if flush := v["innodb_flush_log_at_trx_commit"]; err == nil && flush != "1" {
		p.add(Durability, Warn, "innodb_flush_log_at_trx_commit is "+flush+": a crash of the server or its machine may lose commits",
			"SET GLOBAL innodb_flush_log_at_trx_commit = 1 until the migration is finalized; after a crash, verify")
	}
	if v["log_bin"] == "ON" && v["binlog_format"] == "STATEMENT" {
		p.add(BinlogFormat, Block, "binlog_format is STATEMENT, which refuses writes under READ COMMITTED", "SET GLOBAL binlog_format = 'ROW', also in the server's configuration, and reconnect")
	}
	return v, err
}

func (p serverProbe) mysqlPrepared(ctx context.Context) error {
	err := p.Database.Unprepared(ctx, p.Session, backend.PreparedPatience, nil)
	switch {
	case backend.IsMySQL(err, "1401", "1227"): // only users with the right to end XA transactions can list them, and a cutover needs the list
		p.add(Privileges, Block, "the user may not list prepared XA transactions, which may change the tables after the switch", "GRANT XA_RECOVER_ADMIN ON *.* to it")
		return nil
	case err != nil && strings.Contains(err.Error(), "XA RECOVER"):
		p.add(Prepared, Block, strings.TrimPrefix(err.Error(), backend.ErrNotReady.Error()+": "), "XA COMMIT or XA ROLLBACK each")
		return nil
	}
	return err
}

// mysqlReaders finds views, triggers, events and routines whose text names the tables,
// which do not exist under these names after the switch: only MySQL lists the tables that a
// view reads, and no server those that a routine uses.
func (p serverProbe) mysqlReaders(ctx context.Context) error {
	for _, t := range p.cfg.Tables {
		p.shape.Name = t.Name
		for _, kind := range mysqlReaders {
			names, err := p.List(ctx, kind.query, kind.pattern(t.Name))
			if err != nil {
				return err
			}
			for _, name := range names {
				if _, of, _ := strings.Cut(name, " of "); kind.name == "trigger" && p.has(of) {
					continue // that trigger has its own finding
				}
				p.add(OutsideJob, Warn, "the "+kind.name+" "+name+" names it, and will fail after the switch", kind.fix)
			}
		}
	}
	return nil
}

// mysqlReaders are the kinds of objects that may name a table. The texts of views have
// quoted names.
var mysqlReaders = []struct {
	name, query, fix string
	pattern          func(table string) string
}{
	{"view", "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() AND LOCATE(?, VIEW_DEFINITION) > 0",
		"let its readers query the shards, and drop it before the switch", dialect.MySQL{}.Quote},
	{"trigger", "SELECT CONCAT(TRIGGER_NAME, ' of ', EVENT_OBJECT_TABLE) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()" +
		" AND LEFT(TRIGGER_NAME, 8) <> 'shardid_' AND ACTION_STATEMENT REGEXP ?",
		"drop it before the switch, or change it so that it does not use the table: writes to its own table would fail", asWord},
	{"event", "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE() AND EVENT_DEFINITION REGEXP ?",
		"let a program do its work on the shards, and drop it before the switch", asWord},
	{"routine", "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_DEFINITION REGEXP ?",
		"let its callers query the shards", asWord},
}

// asWord matches the name where it is not part of another name.
func asWord(name string) string {
	return "(^|[^A-Za-z0-9_$])" + regexp.QuoteMeta(name) + "([^A-Za-z0-9_$]|$)"
}

func (p serverProbe) mysqlSize(ctx context.Context) error {
	var names []any
	for _, t := range p.cfg.Tables {
		names = append(names, t.Name)
	}
	bytes, err := p.Number(ctx, "SELECT SUM(DATA_LENGTH + INDEX_LENGTH) FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN (?"+
		strings.Repeat(", ?", len(names)-1)+")", names...)
	if err == nil {
		p.size(bytes)
	}
	return err
}

var (
	shardPrivileges  = []string{"PROCESS", "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "TRIGGER", "LOCK TABLES"}
	sourcePrivileges = append([]string{"SHOW VIEW"}, shardPrivileges...)
)

// mysqlPrivileges checks the privileges that were granted to the user by name. Privileges
// from a role are not visible there, so that only refusals by the server block.
func (p serverProbe) mysqlPrivileges(ctx context.Context, onlySuper bool, needed []string) error {
	const me = "CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')"
	has, err := p.List(ctx, "SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = "+me+
		" UNION SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE = "+me+" AND DATABASE() LIKE TABLE_SCHEMA")
	if err != nil {
		return err
	}
	if onlySuper && !slices.Contains(has, "SUPER") {
		p.add(TriggersRefused, Block, "the binary log is on, and the user is not SUPER: the server refuses triggers with error 1419",
			"SET GLOBAL log_bin_trust_function_creators = 1, and set it in the server's configuration, too: a restart resets it")
	}
	if err := p.mysqlReadOnly(ctx, has); err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(needed), func(n string) bool { return slices.Contains(has, n) })
	if len(missing) == 0 {
		return nil
	}
	others, err := p.otherGrants(ctx, me)
	if others || err != nil {
		p.add(Privileges, Warn, "the user was not granted "+strings.Join(missing, ", ")+" by name", "grant it, unless a role gives it or it is granted on the tables")
		return err
	}
	p.add(Privileges, Block, "the user lacks "+strings.Join(missing, ", "), "grant it")
	return nil
}

// otherGrants reports whether a role, PUBLIC or grants on tables may give the privileges
// that were not granted to the user by name.
func (p serverProbe) otherGrants(ctx context.Context, me string) (bool, error) {
	n, err := p.Number(ctx, "SELECT COALESCE(CURRENT_ROLE(), 'NONE') NOT IN ('NONE', '')"+
		" OR EXISTS(SELECT 1 FROM information_schema.TABLE_PRIVILEGES WHERE GRANTEE = "+me+" AND TABLE_SCHEMA = DATABASE())"+
		" OR EXISTS(SELECT 1 FROM information_schema.SCHEMA_PRIVILEGES WHERE GRANTEE LIKE '%PUBLIC%')")
	return n != 0, err
}

// mysqlReadOnly checks whether the server accepts the user's writes.
func (p serverProbe) mysqlReadOnly(ctx context.Context, has []string) error {
	v, err := p.variables(ctx, "read_only", "super_read_only")
	if err != nil {
		return err
	}
	exempt := slices.ContainsFunc([]string{"SUPER", "CONNECTION_ADMIN", "READ_ONLY ADMIN"}, func(may string) bool { return slices.Contains(has, may) })
	if on := v["read_only"]; on != "" && on != "OFF" && (!exempt || v["super_read_only"] == "ON") {
		p.add(ReadOnly, Block, "the server accepts no writes: read_only is "+on, "SET GLOBAL read_only = OFF, if it is the server that applications write to")
	}
	return nil
}

// mysqlNumbers checks whether the server shows InnoDB's table ids, by which a TRUNCATE is
// detected.
func (p serverProbe) mysqlNumbers(ctx context.Context) error {
	_, err := p.Database.Numbers(ctx, p.Session, []string{p.cfg.Tables[0].Name})
	switch {
	case dialect.FaultOf(err) == dialect.NoRight:
		p.add(Privileges, Block, "the user may not see InnoDB's table ids, by which a TRUNCATE is detected", "GRANT PROCESS ON *.* to it")
		return nil
	case errors.Is(err, backend.ErrUnsupported):
		p.add(Unsupported, Block, plain(err), "change the name as the message says")
		return nil
	}
	return err
}
