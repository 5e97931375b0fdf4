// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

func (m postgresCatalog) OwnTables(log string) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + JobTable + " (job text NOT NULL PRIMARY KEY, phase text NOT NULL, servers text NOT NULL DEFAULT '')",
		"CREATE TABLE IF NOT EXISTS " + SpanTable + " (job text NOT NULL, tbl int NOT NULL, name text NOT NULL, low bigint, hig bigint," +
			" identity text NOT NULL, setup text NOT NULL DEFAULT '', PRIMARY KEY (job, tbl))",
		"CREATE TABLE IF NOT EXISTS " + RouteTable + " (tbl text NOT NULL PRIMARY KEY, job text NOT NULL, epoch bigint NOT NULL, route text NOT NULL)",
		"CREATE TABLE IF NOT EXISTS " + TargetTable + " (job text NOT NULL, tbl int NOT NULL, shard int NOT NULL, place text NOT NULL, identity text NOT NULL, beat bigint NOT NULL," +
			" PRIMARY KEY (job, tbl, shard))",
		m.fenceDefinition(FenceTable), m.logDefinition(log),
	}
}

func (m postgresCatalog) ShardTables(log string) []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + OwnerTable + " (name text NOT NULL PRIMARY KEY, job text NOT NULL, owner text NOT NULL, beat bigint NOT NULL DEFAULT 0)",
		m.fenceDefinition(ShardFenceTable), m.logDefinition(log),
	}
}

func (postgresCatalog) fenceDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + name + " (job text NOT NULL PRIMARY KEY, epoch bigint NOT NULL, owner text NOT NULL)"
}

func (m postgresCatalog) logDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + m.Quote(name) + " (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tbl int NOT NULL, id bigint NOT NULL)"
}

func (m postgresCatalog) MapDefinition(name string) string {
	return "CREATE TABLE IF NOT EXISTS " + m.Quote(name) + " (tbl int NOT NULL, old bigint NOT NULL, new bigint NOT NULL, PRIMARY KEY (tbl, old), UNIQUE (tbl, new))"
}

const (
	postgresNamed = " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = ?"
	postgresTable = postgresNamed + " AND c.relkind IN ('r', 'p')"
	postgresOid   = "(SELECT c.oid" + postgresTable + ")"
)

func (postgresCatalog) Exists(ctx context.Context, s *Session, name string) (bool, error) {
	n, err := s.Number(ctx, "SELECT COUNT(*)"+postgresNamed+" AND c.relkind IN ('r', 'p', 'v', 'm', 'f')", name)
	return n > 0, err
}

// postgresCounter is the sequence from which the key of a table takes its default: that of
// an identity, of a serial, or another one.
const postgresCounter = "WITH k AS (SELECT i.indrelid AS rel, i.indkey[0] AS att FROM pg_index i WHERE i.indisprimary AND i.indrelid = " + postgresOid + ")" +
	" SELECT q.seqrelid::regclass::text, q.seqmax FROM k JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = k.rel AND d.refobjsubid = k.att AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'" +
	" JOIN pg_sequence q ON q.seqrelid = d.objid" +
	" UNION SELECT q.seqrelid::regclass::text, q.seqmax FROM k JOIN pg_attrdef f ON f.adrelid = k.rel AND f.adnum = k.att" +
	" JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_class'::regclass JOIN pg_sequence q ON q.seqrelid = d.refobjid"

// sequence is the sequence of the key and its largest value; "" when there is none.
func (postgresCatalog) sequence(ctx context.Context, s *Session, name string) (sequence string, last int64, err error) {
	err = s.QueryRowContext(ctx, postgresCounter, name).Scan(&sequence, &last)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return sequence, last, err
}

func (m postgresCatalog) Counter(ctx context.Context, s *Session, name string) (int64, error) {
	sequence, _, err := m.sequence(ctx, s, name)
	if err != nil || sequence == "" {
		return 0, err
	}
	return s.Number(ctx, "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM "+sequence)
}

// SetCounter sets the sequence to its largest value at most; the next INSERT fails then.
func (m postgresCatalog) SetCounter(ctx context.Context, s *Session, name string, id int64) error {
	sequence, last, err := m.sequence(ctx, s, name)
	if err != nil || sequence == "" {
		return err
	}
	return s.Exec(ctx, fmt.Sprintf("SELECT setval('%s', %d)", strings.ReplaceAll(sequence, "'", "''"), min(id, last)))
}

// TakeNumbers lets programs give the values of the columns that a table always numbers itself (GENERATED ALWAYS AS
// IDENTITY of PostgreSQL), except those of one column.
func TakeNumbers(ctx context.Context, s *Session, name, except string) error {
	if s.Database.Name() != "postgres" {
		return nil
	}
	columns, err := s.List(ctx, "SELECT a.attname FROM pg_attribute a WHERE a.attrelid = "+postgresOid+" AND a.attidentity = 'a' AND NOT a.attisdropped AND a.attname <> ? ORDER BY a.attnum", name, except)
	if err != nil {
		return err
	}
	for _, column := range columns {
		if err := s.Exec(ctx, "ALTER TABLE "+s.Database.Quote(name)+" ALTER COLUMN "+s.Database.Quote(column)+" SET GENERATED BY DEFAULT"); err != nil {
			return err
		}
	}
	return nil
}

func (postgresCatalog) BytesType() string { return "bytea" }

func (m postgresCatalog) Describe(ctx context.Context, s *Session, name string) (sh Table, err error) {
	err = s.ReadTx(ctx, func() error {
		sh, err = m.describeOne(ctx, s, name)
		return err
	})
	return sh, err
}

func (m postgresCatalog) describeOne(ctx context.Context, s *Session, name string) (Table, error) {
	sh := Table{Name: name}
	if err := m.checkTable(ctx, s, name); err != nil {
		return sh, err
	}
	if !s.Locked { // nobody alters the table until the transaction ends
		err := s.Exec(ctx, "LOCK TABLE "+m.Quote(name)+" IN ACCESS SHARE MODE")
		if noTable(err) { // a switch has renamed it meanwhile
			return sh, fmt.Errorf("table %s: %w", name, ErrNoTable)
		}
		if err != nil {
			return sh, err
		}
	}
	for _, read := range []func(context.Context, *Session, *Table) error{m.readColumns, m.readKeys, m.readForeignKeys} {
		if err := read(ctx, s, &sh); err != nil {
			return sh, err
		}
	}
	var err error
	sh.Triggers, err = s.List(ctx, "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid = "+postgresOid+" ORDER BY 1", name)
	return sh, err
}

// postgresLongest is the largest length of a name in bytes; the server truncates longer
// names.
const postgresLongest = 63

// checkTable refuses tables that a copy would change or that a switch could not close.
func (postgresCatalog) checkTable(ctx context.Context, s *Session, name string) error {
	refuse := func(what string) error {
		return fmt.Errorf("%w: table %s %s", ErrUnsupported, name, what)
	}
	if len(strings.TrimSuffix(name, Retired("")))+len(Retired("")) > postgresLongest {
		return refuse("has a name longer than 59 bytes, to which _old cannot be added")
	}
	var kind, persistence, owner string
	var partition, inherits, security, rules, owns bool
	err := s.QueryRowContext(ctx, "SELECT c.relkind, c.relpersistence, c.relispartition, EXISTS(SELECT 1 FROM pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent)), c.relrowsecurity, c.relhasrules AND EXISTS(SELECT 1 FROM pg_rewrite r WHERE r.ev_class = c.oid),"+
		" pg_get_userbyid(c.relowner), pg_has_role(c.relowner, 'USAGE')"+postgresNamed, name).Scan(&kind, &persistence, &partition, &inherits, &security, &rules, &owner, &owns)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("table %s: %w", name, ErrNoTable)
	case err != nil:
		return err
	case !owns:
		return refuse("belongs to " + owner + ", and only its owner may rename it; GRANT " + dialect.Postgres{}.Quote(owner) + " to the user of the job")
	case kind == "p" || partition:
		return refuse("is partitioned, or a partition; move the rows into a table that is not")
	case kind != "r":
		return refuse("is a view or a foreign table; a migration needs an ordinary table with row triggers")
	case persistence != "p":
		return refuse("is unlogged or temporary, and loses its rows in a crash; ALTER TABLE … SET LOGGED")
	case inherits:
		return refuse("inherits from another table, or is inherited from; a query of the parent returns rows of both")
	case security:
		return refuse("has row-level security, which the shards' tables would not have; ALTER TABLE … DISABLE ROW LEVEL SECURITY, and have the application check")
	case rules:
		return refuse("has rules, which rewrite statements; DROP RULE each")
	}
	found, err := s.List(ctx, "SELECT CASE WHEN contype = 'x' THEN 'the EXCLUDE constraint ' || conname || ', which would hold within each shard alone; drop it'"+
		" WHEN NOT convalidated THEN 'the constraint ' || conname || ', which is NOT VALID, so that rows may not pass it; ALTER TABLE … VALIDATE CONSTRAINT'"+
		" ELSE 'the constraint ' || conname || ', which is DEFERRABLE; make it again as one that is not' END"+
		" FROM pg_constraint WHERE conrelid = "+postgresOid+" AND (contype = 'x' OR contype IN ('p', 'u') AND condeferrable OR contype = 'c' AND NOT convalidated) ORDER BY conname", name)
	if err == nil && len(found) > 0 {
		err = refuse("has " + found[0])
	}
	return err
}

// These are the column types that callers distinguish. The names of integer types are the
// server's.
const (
	postgresText  = "text"
	postgresUUID  = "uuid"
	postgresOther = "other"
)

// postgresCarried are the types whose text has the complete value under the settings of
// each connection; true for types with short values.
var postgresCarried = map[string]bool{
	"int2": true, "int4": true, "int8": true, "float4": true, "float8": true, "bool": true, "uuid": true, "oid": true,
	"date": true, "time": true, "timetz": true, "timestamp": true, "timestamptz": true, "interval": true,
	"macaddr": true, "macaddr8": true, "inet": true, "cidr": true, "pg_lsn": true,
	"numeric": false, "text": false, "varchar": false, "bpchar": false, "name": false, "bytea": false,
	"json": false, "jsonb": false, "jsonpath": false, "bit": false, "varbit": false, "tsvector": false, "tsquery": false,
	"citext": false, // of the extension: a text that compares otherwise
	"point":  false, "line": false, "lseg": false, "box": false, "path": false, "polygon": false, "circle": false,
}

// postgresElements are the types that a column's type is made of: those of array elements,
// range bounds and domains. A bpchar without a length is excluded: its text loses trailing
// spaces.
const postgresElements = "WITH RECURSIVE made AS (SELECT a.attnum, a.attname, a.attnotnull, a.attgenerated, a.atttypid AS type, a.atttypmod AS size FROM pg_attribute a WHERE a.attrelid = " + postgresOid + " AND a.attnum > 0 AND NOT a.attisdropped" +
	" UNION ALL SELECT m.attnum, m.attname, m.attnotnull, m.attgenerated, CASE WHEN t.typtype = 'd' THEN t.typbasetype WHEN t.typtype IN ('r', 'm') THEN (SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)) ELSE t.typelem END," +
	" CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE 0 END" +
	" FROM made m JOIN pg_type t ON t.oid = m.type WHERE t.typtype IN ('d', 'r', 'm') OR t.typtype = 'b' AND t.typcategory = 'A')" +
	" SELECT m.attname, m.attnotnull, m.attgenerated <> '', CASE WHEN t.typtype = 'e' THEN 'enum' WHEN t.typname = 'bpchar' AND m.size = -1 THEN '?' WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname" +
	" WHEN EXISTS (SELECT FROM pg_depend d JOIN pg_extension x ON x.oid = d.refobjid AND x.extname = 'citext' WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e') THEN 'citext'" +
	" ELSE '?' END, format_type(t.oid, NULL)," +
	" (SELECT d.typtype = 'd' OR d.oid = t.oid FROM pg_attribute a JOIN pg_type d ON d.oid = a.atttypid WHERE a.attrelid = " + postgresOid + " AND a.attnum = m.attnum)," +
	" (SELECT format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = " + postgresOid + " AND a.attnum = m.attnum)" +
	" FROM made m JOIN pg_type t ON t.oid = m.type WHERE NOT (t.typtype IN ('d', 'r', 'm') OR t.typtype = 'b' AND t.typcategory = 'A') ORDER BY m.attnum"

func (postgresCatalog) readColumns(ctx context.Context, s *Session, sh *Table) error {
	var odd []string
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var c Column
		var notNull, generated, plain bool
		var typ, shown string
		if err := rows.Scan(&c.Name, &notNull, &generated, &typ, &shown, &plain, &c.Definition); err != nil {
			return err
		}
		if generated {
			if !slices.Contains(sh.Generated, c.Name) {
				sh.Generated = append(sh.Generated, c.Name)
			}
			return nil
		}
		if _, twice := sh.Column(c.Name); twice {
			return fmt.Errorf("%w: table %s: two columns called %s differ only in case", ErrUnsupported, sh.Name, c.Name)
		}
		short, carried := postgresCarried[typ]
		if !carried && typ != "enum" {
			odd = append(odd, "column "+c.Name+" uses the type "+shown)
			return nil
		}
		c.Nullable, c.kind, c.Type = !notNull, Quoted, postgresOther
		if short && plain {
			c.kind = Number
		}
		switch {
		case !plain:
		case strings.HasPrefix(typ, "int") && typ != "interval", typ == postgresUUID:
			c.Type = typ
		case typ == "text", typ == "varchar", typ == "bpchar":
			c.Type = postgresText
		}
		sh.Columns = append(sh.Columns, c)
		return nil
	}, postgresElements, sh.Name, sh.Name, sh.Name)
	if err == nil && len(odd) > 0 {
		err = fmt.Errorf("%w: table %s: %s, whose values a copy cannot keep exactly; change its type, for example to text", ErrUnsupported, sh.Name, strings.Join(odd, ", and "))
	}
	return err
}

// readKeys leaves out partial unique indexes and those on expressions: they refuse rows as
// others do.
func (postgresCatalog) readKeys(ctx context.Context, s *Session, sh *Table) error {
	var primary []string
	last := ""
	err := s.Each(ctx, func(rows *sql.Rows) error {
		var index, column string
		var isPrimary bool
		if err := rows.Scan(&index, &column, &isPrimary); err != nil {
			return err
		}
		switch {
		case isPrimary:
			primary = append(primary, column)
		case index == last:
			u := &sh.Uniques[len(sh.Uniques)-1]
			*u = append(*u, column)
		default:
			sh.Uniques, last = append(sh.Uniques, []string{column}), index
		}
		return nil
	}, "SELECT x.relname, COALESCE(a.attname, pg_get_indexdef(i.indexrelid, k.n::int, true)), i.indisprimary FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid"+
		" CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(attnum, n) LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0"+
		" WHERE i.indisunique AND i.indisvalid AND k.n <= i.indnkeyatts AND i.indrelid = "+postgresOid+" ORDER BY x.relname, k.n", sh.Name)
	if err == nil {
		err = sh.setKey(primary)
	}
	return err
}

// postgresActions are those of foreign keys.
const postgresActions = "('a', 'NO ACTION'), ('r', 'RESTRICT'), ('c', 'CASCADE'), ('n', 'SET NULL'), ('d', 'SET DEFAULT')"

// readForeignKeys has subqueries for names and rules: the server takes several times as long to plan a join of all these tables.
func (postgresCatalog) readForeignKeys(ctx context.Context, s *Session, sh *Table) error {
	return s.Each(ctx, func(rows *sql.Rows) error {
		// In PostgreSQL, actions of foreign keys run the child's triggers.
		var k keyColumn
		if err := rows.Scan(&k.child, &k.parent, &k.name, &k.column, &k.refers, &k.onDelete, &k.onUpdate, &k.drop, &k.add); err != nil {
			return err
		}
		sh.addKey(k)
		return nil
	}, "WITH act(code, rule) AS (VALUES "+postgresActions+") SELECT "+postgresHere("ch")+", "+postgresHere("pa")+", f.conname, (SELECT attname FROM pg_attribute WHERE attrelid = f.conrelid AND attnum = k.c), (SELECT attname FROM pg_attribute WHERE attrelid = f.confrelid AND attnum = k.p),"+
		" (SELECT rule FROM act WHERE code = f.confdeltype::text), (SELECT rule FROM act WHERE code = f.confupdtype::text),"+
		" 'ALTER TABLE ' || f.conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(f.conname), 'ALTER TABLE ' || f.conrelid::regclass || ' ADD CONSTRAINT ' || quote_ident(f.conname) || ' ' || pg_get_constraintdef(f.oid)"+
		" FROM pg_constraint f JOIN pg_class ch ON ch.oid = f.conrelid JOIN pg_class pa ON pa.oid = f.confrelid CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY k(c, p, n)"+
		" WHERE f.contype = 'f' AND f.conparentid = 0 AND "+postgresOid+" IN (f.conrelid, f.confrelid) ORDER BY 1, f.conname, k.n", sh.Name)
}

// postgresHere is the name of a table, qualified by its schema unless that is the current
// one.
func postgresHere(of string) string {
	return "(SELECT CASE WHEN n.nspname = current_schema() THEN " + of + ".relname ELSE n.nspname || '.' || " + of + ".relname END FROM pg_namespace n WHERE n.oid = " + of + ".relnamespace)"
}

func (m postgresCatalog) DropKeys(ctx context.Context, s *Session, table string, keys []ForeignKey) error {
	drops := make([]string, len(keys))
	for i, fk := range keys {
		drops[i] = "DROP CONSTRAINT IF EXISTS " + m.Quote(fk.name)
	}
	return postgresCapture(m).limitingWaits(ctx, s, func() error {
		return s.Exec(ctx, "ALTER TABLE "+m.Quote(table)+" "+strings.Join(drops, ", "))
	})
}

// Unclosable returns nothing: names of constraints do not change with the table's.
func (postgresCatalog) Unclosable(context.Context, *Session, string) ([]string, error) {
	return nil, nil
}

// Blockers returns views, policies, and functions with SQL-standard bodies: they refer to a
// table by its oid, and would silently use the retired table after a switch.
func (postgresCatalog) Blockers(ctx context.Context, s *Session, tables []string) (found []string, err error) {
	for _, t := range tables {
		names, err := s.List(ctx, "SELECT DISTINCT CASE WHEN v.oid IS NULL THEN pg_describe_object(d.classid, d.objid, 0) ELSE 'view ' || v.relname END"+
			" FROM pg_depend d LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid LEFT JOIN pg_class v ON v.oid = r.ev_class"+
			" WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_policy'::regclass) AND d.refclassid = 'pg_class'::regclass AND d.refobjid = "+postgresOid+" AND v.oid IS DISTINCT FROM d.refobjid ORDER BY 1", t)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found = append(found, name+" uses table "+t+", and would use the retired table after the switch; drop it before the switch")
		}
	}
	return found, nil
}

// TargetDefinition is one text, which the server runs as one transaction: a table without
// its unique keys would accept rows that it must refuse.
func (m postgresCatalog) TargetDefinition(ctx context.Context, s *Session, of Table, name string) ([]string, error) {
	if len(Sealed(strings.TrimSuffix(name, Sealed("")))) > postgresLongest {
		return nil, fmt.Errorf("%w: the name of the shard %s is longer than 56 bytes, and _sealed cannot be added to it", ErrUnsupported, name)
	}
	parts, err := m.definition(ctx, s, of, true)
	if err != nil {
		return nil, err
	}
	indexes, err := m.indexes(ctx, s, of.Name, m.Quote(name))
	if err != nil {
		return nil, err
	}
	table := "CREATE TABLE " + m.Quote(name) + " (" + strings.Join(parts, ", ") + ")"
	return []string{strings.Join(append([]string{table}, indexes...), "; CREATE ")}, nil
}

// indexes are the statements for indexes that belong to no constraint, on a table of any
// name.
func (postgresCatalog) indexes(ctx context.Context, s *Session, of, on string) ([]string, error) {
	return s.List(ctx, "SELECT CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END || 'INDEX ON ' || ?::text || substring(pg_get_indexdef(i.indexrelid) FROM position(' USING ' IN pg_get_indexdef(i.indexrelid)))"+
		" FROM pg_index i WHERE i.indisvalid AND NOT EXISTS(SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u')) AND i.indrelid = "+postgresOid+" ORDER BY 1", on, of)
}

// definition returns the columns and constraints of a table, without foreign keys. A
// shard's table has BIGINT ids and no sequence.
func (m postgresCatalog) definition(ctx context.Context, s *Session, of Table, shard bool) (parts []string, err error) {
	err = s.Each(ctx, func(rows *sql.Rows) error {
		var name, typ, collation, fallback, generated, identity string
		var notNull, counted bool
		if err := rows.Scan(&name, &typ, &collation, &fallback, &generated, &identity, &notNull, &counted); err != nil {
			return err
		}
		if shard && m.isWide(of, name) {
			typ = "bigint"
		}
		part := m.Quote(name) + " " + typ + collation
		switch {
		case generated != "":
			part += " GENERATED ALWAYS AS (" + fallback + ") " + map[string]string{"s": "STORED", "v": "VIRTUAL"}[generated]
		case fallback != "" && !(shard && counted):
			part += " DEFAULT " + fallback
		case identity != "" && !shard:
			part += " IDENTITY d" // also for ALWAYS, which a rollback changes; see TakeNumbers
		}
		if notNull {
			part += " NOT NULL"
		}
		parts = append(parts, part)
		return nil
	}, "SELECT a.attname, format_type(a.atttypid, a.atttypmod), CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END,"+
		" COALESCE(pg_get_expr(d.adbin, d.adrelid), ''), a.attgenerated, a.attidentity, a.attnotnull, COALESCE(pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%', false)"+
		" FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"+
		" WHERE a.attrelid = "+postgresOid+" AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum", of.Name)
	if err != nil {
		return nil, err
	}
	constraints, err := s.List(ctx, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype IN ('p', 'u', 'c') AND conrelid = "+postgresOid+" ORDER BY contype, conname", of.Name)
	return append(parts, constraints...), err
}

func (postgresCatalog) isWide(of Table, column string) bool {
	for _, name := range of.wide() {
		if strings.EqualFold(name, column) {
			return true
		}
	}
	return false
}

var _ dialect.Dialect = postgresCatalog{}
