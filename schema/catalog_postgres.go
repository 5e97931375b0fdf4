// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
)

// postgresCatalog reads pg_catalog, which, unlike information_schema, lists tables that the
// user has no right to. It sees the tables that an unqualified name reaches, in any schema
// of the search path.
type postgresCatalog struct{ session }

var _ catalog = postgresCatalog{}

func openPostgresCatalog(ctx context.Context, s session) (postgresCatalog, error) {
	var current sql.NullString
	if err := s.QueryRowContext(ctx, "SELECT current_schema()::text").Scan(&current); err != nil {
		return postgresCatalog{}, err
	}
	if !current.Valid {
		return postgresCatalog{}, ErrNoSchema
	}
	return postgresCatalog{s}, nil
}

// Partitions of a table and tables that belong to an extension are left out.
const postgresBaseTable = "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace" +
	" WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND pg_table_is_visible(c.oid)" +
	` AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'` +
	" AND NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')"

func (c postgresCatalog) names(ctx context.Context) ([]string, error) {
	return c.list(ctx, "SELECT c.relname::text "+postgresBaseTable)
}

func (c postgresCatalog) table(ctx context.Context, name string) (table, error) {
	t := table{name: name, exact: true}
	var oid int64
	err := c.QueryRowContext(ctx, "SELECT c.oid::bigint "+postgresBaseTable+" AND c.relname = $1", name).Scan(&oid)
	if errors.Is(err, sql.ErrNoRows) {
		return t, fmt.Errorf("%w: %s in the schemas of the search_path", ErrNoTable, name)
	}
	if err != nil {
		return t, err
	}
	if t.columns, err = c.columns(ctx, oid); err != nil {
		return t, err
	}
	if t.primaryKey, err = c.primaryKey(ctx, oid); err != nil {
		return t, err
	}
	if t.foreignKeys, err = c.foreignKeys(ctx, oid); err != nil {
		return t, err
	}
	t.uniqueKeys, err = c.uniqueKeys(ctx, oid)
	return t, err
}

func (postgresCatalog) close(context.Context) error { return nil }

// postgresSequence is the sequence that numbers a column. The sequence of an identity
// depends on the column. A default that calls nextval depends on its sequence, whether
// SERIAL or a user created it.
const postgresSequence = "(SELECT s.oid FROM pg_class s JOIN pg_depend p ON" +
	" p.classid = 'pg_class'::regclass AND p.objid = s.oid AND p.refclassid = 'pg_class'::regclass" +
	" AND p.refobjid = a.attrelid AND p.refobjsubid = a.attnum AND p.deptype = 'i'" +
	" OR p.classid = 'pg_attrdef'::regclass AND p.objid = d.oid AND p.refclassid = 'pg_class'::regclass AND p.refobjid = s.oid" +
	" WHERE s.relkind = 'S' LIMIT 1)"

func (c postgresCatalog) columns(ctx context.Context, oid int64) ([]column, error) {
	var columns []column
	var sequences []sql.NullInt64
	err := c.each(ctx, func(rows *sql.Rows) error {
		var col column
		var sequence sql.NullInt64
		if err := rows.Scan(&col.name, &col.typ, &sequence); err != nil {
			return err
		}
		col.max, col.auto = postgresMax(col.typ), sequence.Valid
		columns, sequences = append(columns, col), append(sequences, sequence)
		return nil
	}, "SELECT a.attname::text, format_type(CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END, NULL), "+postgresSequence+"::bigint"+
		" FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"+
		" LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"+
		" WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum", oid)
	for i := range columns {
		if err == nil && columns[i].auto {
			err = c.readCounter(ctx, sequences[i].Int64, &columns[i])
		}
	}
	return columns, err
}

// postgresMax returns the largest value of an integer type, 0 for other types.
func postgresMax(typ string) uint64 {
	return map[string]uint64{"smallint": math.MaxInt16, "integer": math.MaxInt32, "bigint": math.MaxInt64}[typ]
}

// readCounter reads the sequence itself: pg_sequences does not show the next value of a
// sequence that was set and not used since.
func (c postgresCatalog) readCounter(ctx context.Context, sequence int64, col *column) error {
	var step int64
	err := c.QueryRowContext(ctx, "SELECT format('%I.%I', n.nspname, s.relname), q.seqincrement, q.seqmax, NOT has_sequence_privilege(s.oid, 'SELECT')"+
		" FROM pg_class s JOIN pg_namespace n ON n.oid = s.relnamespace JOIN pg_sequence q ON q.seqrelid = s.oid"+
		" WHERE s.oid = $1::bigint::oid", sequence).Scan(&col.sequence, &step, &col.end, &col.hidden)
	if err != nil || col.hidden {
		return err
	}
	var last int64
	var used bool
	err = c.QueryRowContext(ctx, "SELECT last_value, is_called FROM "+col.sequence).Scan(&last, &used)
	col.counter = nextOf(last, step, used)
	return err
}

// nextOf returns the next value of a sequence. Of a descending one it returns the last value
// plus one: higher values that it has given are ids of rows.
func nextOf(last, step int64, used bool) uint64 {
	next := uint64(max(1, last))
	if used && last > 0 {
		next = uint64(last) + uint64(max(1, step))
	}
	return next
}

func (c postgresCatalog) primaryKey(ctx context.Context, oid int64) ([]string, error) {
	return c.list(ctx, "SELECT a.attname::text FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY u (attnum, n)"+
		" JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum"+
		" WHERE k.conrelid = $1::bigint::oid AND k.contype = 'p' ORDER BY u.n", oid)
}

func (c postgresCatalog) foreignKeys(ctx context.Context, oid int64) ([]ForeignKey, error) {
	var keys []ForeignKey
	err := c.each(ctx, func(rows *sql.Rows) error {
		var fk ForeignKey
		var column, referenced string
		if err := rows.Scan(&fk.Name, &column, &fk.References, &referenced, &fk.OnDelete, &fk.OnUpdate); err != nil {
			return err
		}
		if last := len(keys) - 1; last < 0 || keys[last].Name != fk.Name {
			keys = append(keys, fk)
		}
		keys[len(keys)-1].add(column, referenced)
		return nil
	}, "SELECT k.conname::text, a.attname::text, CASE WHEN pg_table_is_visible(r.oid) THEN '' ELSE n.nspname || '.' END || r.relname, b.attname::text, "+
		postgresAction("k.confdeltype")+", "+postgresAction("k.confupdtype")+
		" FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY u (a, b, n)"+
		" JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.a"+
		" JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = u.b"+
		" JOIN pg_class r ON r.oid = k.confrelid JOIN pg_namespace n ON n.oid = r.relnamespace"+
		// A foreign key to a partitioned table has one more constraint for each partition.
		" WHERE k.conrelid = $1::bigint::oid AND k.contype = 'f' AND k.conparentid = 0 ORDER BY k.conname, u.n", oid)
	return keys, err
}

// uniqueKeys leaves out the columns that an index only includes.
func (c postgresCatalog) uniqueKeys(ctx context.Context, oid int64) ([]uniqueKey, error) {
	return readUniqueKeys(ctx, c.session, "SELECT i.relname::text, a.attname::text FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid"+
		" CROSS JOIN LATERAL generate_series(1, x.indnkeyatts::int) u (n)"+
		" LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[u.n - 1] AND a.attnum <> 0"+
		" WHERE x.indrelid = $1::bigint::oid AND x.indisunique AND NOT x.indisprimary ORDER BY i.relname, u.n", oid)
}

func postgresAction(column string) string {
	return "CASE " + column + " WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'SET DEFAULT' END"
}
