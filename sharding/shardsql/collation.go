// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// collated lists, by character set, the suffixes of those collations of MySQL and MariaDB whose
// weights compare byte by byte as the server compares the texts. Collations with several levels of
// weights are not in it.
var collated = map[string]string{
	"utf8mb4": "general_ci unicode_ci unicode_520_ci bin nopad_bin 0900_ai_ci 0900_bin uca1400_ai_ci",
	"utf8mb3": "general_ci unicode_ci unicode_520_ci bin nopad_bin uca1400_ai_ci",
	"latin1":  "swedish_ci german2_ci bin",
}

// isCollated reports whether a collation is one of them. MariaDB before 10.6 writes utf8 for
// utf8mb3.
func isCollated(name string) bool {
	charset, rest, _ := strings.Cut(name, "_")
	if charset == "utf8" {
		charset = "utf8mb3"
	}
	return slices.Contains(strings.Fields(collated[charset]), rest)
}

// pads reports whether a collation ignores spaces at the end of a text.
func pads(collation string) bool {
	return !strings.Contains(collation, "_nopad_") && !strings.Contains(collation, "_0900_")
}

// texts reads the collations of a table on MySQL and MariaDB and, if sorts is set, how its texts, ENUMs and SETs
// compare.
func texts(ctx context.Context, pool dialect.Querier, table string, sorts bool, to map[string]plan.Column) (err error) {
	type text struct {
		column, kind, collation, sent, zone string
		long                                bool
	}
	var found []text // read completely before the next query, for pools of one connection
	err = dialect.Each(ctx, pool, func(rows *sql.Rows) error {
		var t text
		err := rows.Scan(&t.column, &t.kind, &t.collation, &t.sent, &t.zone, &t.long)
		found = append(found, t)
		return err
	}, `SELECT COLUMN_NAME, DATA_TYPE, COALESCE(COLLATION_NAME, ''), @@character_set_connection, IF(@@time_zone = 'SYSTEM', @@system_time_zone, @@time_zone), COALESCE(CHARACTER_OCTET_LENGTH > @@max_sort_length, FALSE) FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND (COLLATION_NAME IS NOT NULL OR DATA_TYPE IN ('uuid', 'binary', 'varbinary', 'date', 'time', 'datetime', 'timestamp'))`, table)
	if err != nil {
		return fmt.Errorf("collations of %s: %w", table, err)
	}
	weights := map[string]plan.Value{}
	for _, t := range found {
		name := strings.ToLower(t.column)
		c := to[name]
		c.Collation = equality(t.kind, t.collation, t.sent, t.zone)
		to[name] = c
		if !sorts || t.collation == "" {
			continue
		}
		w, known := weights[t.collation]
		if !known && isCollated(t.collation) {
			if w, err = weight(ctx, pool, t.collation); err != nil {
				return err
			}
			weights[t.collation] = w
		}
		if !t.long {
			w.Type.Most = 0
		}
		to[name] = compared(to[name], t.kind, t.collation, w)
	}
	return nil
}

// equality returns the plan.Column.Collation of a column whose values are sent in a character set, or are times of
// a zone.
func equality(kind, collation, sent, zone string) string {
	switch kind = strings.ToLower(kind); kind {
	case "binary", "varbinary":
		return plan.AsBytes
	case "uuid", "date", "time", "datetime":
		return kind
	case "timestamp":
		if zone != "UTC" && !strings.ContainsAny(zone[:min(1, len(zone))], "+-") { // it may have two times with one text
			return ""
		}
		return kind
	case "enum", "set": // compared as numbers with others of the kind
		return ""
	}
	charset, _, _ := strings.Cut(collation, "_")
	if sent != "utf8mb4" && sent != charset { // which may lack a character
		return ""
	}
	return collation
}

// compared returns how values of a column type compare whose texts have these weights.
func compared(c plan.Column, kind, collation string, weight plan.Value) plan.Column {
	switch strings.ToLower(kind) {
	case "enum", "set":
		c.Value = plan.Value{Type: merge.Type{Kind: merge.Integer}, As: plan.Number}
		c.Least = weight
	default:
		c.Value = weight
	}
	if weight.As == plan.Plain {
		c.Unsorted = "it is not known whether the weights of its collation " + collation + " compare as its texts do"
	}
	return c
}

// wholeTexts is the number of bytes of a text whose weight is requested when a server sorts by the
// whole text. It is small enough that the weight fits into a packet; otherwise the weight is NULL.
const wholeTexts = 4096

// weight returns how texts of a collation compare. A server sorts by the first max_sort_length
// bytes of the weights; MariaDB, in collations with one weight for each character, by that many
// bytes of the text; and MySQL, in collations without padding, by the whole text. MariaDB may group
// by as many bytes as it sorts by.
func weight(ctx context.Context, pool dialect.Querier, collation string) (plan.Value, error) {
	charset, _, _ := strings.Cut(collation, "_")
	v := plan.Value{Type: merge.Type{Kind: merge.Bytes}, As: plan.Weight, Collation: collation}
	var space []byte
	var bytewise bool
	query := "SELECT WEIGHT_STRING(CONVERT(' ' USING " + charset + ") COLLATE " + collation + "), @@max_sort_length, VERSION() LIKE '%MariaDB%'"
	if err := pool.QueryRowContext(ctx, query).Scan(&space, &v.Type.Prefix, &bytewise); err != nil {
		return v, fmt.Errorf("weight of a space in %s: %w", collation, err)
	}
	if pads(collation) {
		v.Type.Pad = string(space)
	}
	v.Type.Most = v.Type.Prefix
	switch {
	case strings.Contains(collation, "_0900_"):
		v.Type.Prefix, v.Type.Most = 0, wholeTexts
	case bytewise && !strings.Contains(collation, "_unicode_") && !strings.Contains(collation, "_uca1400_"):
		v.Type.Prefix *= len(space)
	}
	return v, nil
}

// postgresTypes selects the columns of a table of PostgreSQL with their types, those of domains
// resolved. A collation compares bytes if it is C, by its own name or as the database's, or if its
// provider is builtin, which compares code points.
const postgresTypes = `SELECT a.attname::text, b.typname::text, b.typtype::text, COALESCE(k.collisdeterministic, TRUE),
		CASE WHEN k.collname IS NULL THEN TRUE
			WHEN k.collprovider = 'd' THEN COALESCE(to_jsonb(d) ->> 'datlocprovider', 'c') = 'b' OR COALESCE(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c' AND d.datcollate IN ('C', 'POSIX')
			ELSE k.collprovider = 'b' OR k.collprovider = 'c' AND k.collcollate IN ('C', 'POSIX') END,
		CASE WHEN k.collprovider = 'd' THEN COALESCE(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', d.datcollate::text) ELSE COALESCE(k.collname::text, '') END,
		(SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = a.attrelid)
	FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
		JOIN pg_database d ON d.datname = current_database() LEFT JOIN pg_collation k ON k.oid = a.attcollation
	WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped`

// postgresKinds maps the names of types other than texts.
var postgresKinds = map[string]plan.Value{
	"int2": ofKind(merge.Integer), "int4": ofKind(merge.Integer), "int8": {Type: merge.Type{Kind: merge.Integer}, Wide: true},
	"bool": ofKind(merge.Integer), "numeric": ofKind(merge.Decimal), "float4": {Type: merge.Type{Kind: merge.Float}, As: plan.Double}, "float8": ofKind(merge.Float),
	"date": ofKind(merge.Time), "timestamp": ofKind(merge.Time), "timestamptz": ofKind(merge.Time), "bytea": ofKind(merge.Bytes), "uuid": ofKind(merge.Bytes),
}

// postgresColumns reads the columns of a table of PostgreSQL from the catalogue. A query of the
// table itself could fail, which would abort the transaction that executes it.
func postgresColumns(ctx context.Context, pool dialect.Querier, table string) (plan.Table, error) {
	t := plan.Table{Columns: map[string]plan.Column{}}
	err := dialect.Each(ctx, pool, func(rows *sql.Rows) error {
		var name, typ, class, collation string
		var deterministic, bytewise bool
		if err := rows.Scan(&name, &typ, &class, &deterministic, &bytewise, &collation, &t.Namespace); err != nil {
			return err
		}
		c := plan.Column{Value: postgresKinds[typ]}
		switch typ {
		case "int2", "int4", "int8":
			c.Holds = plan.Integers
		case "bytea":
			c.Holds, c.Collation = plan.Bytes, plan.AsBytes
		case "uuid", "date", "time", "timestamp", "timestamptz":
			c.Collation = typ
		case "text", "varchar", "bpchar", "name":
			if c = postgresText(c, typ == "bpchar", deterministic, bytewise, collation); typ == "name" {
				c.Collation = "" // an argument beside it would be cut to 63 bytes
			}
		default:
			if class == "e" {
				c.Value = plan.Value{Type: merge.Type{Kind: merge.Bytes}, Unordered: "the members of " + typ + " sort in the order of their declaration"}
			} else if c.Value.Type.Kind == 0 {
				c.Unsorted = "how values of type " + typ + " compare is not known"
			}
		}
		t.Columns[strings.ToLower(name)] = c
		return nil
	}, postgresTypes, table)
	switch {
	case err != nil:
		return plan.Table{}, fmt.Errorf("columns of %s: %w", table, err)
	case len(t.Columns) == 0:
		return plan.Table{}, &absentError{table}
	}
	return t, nil
}

// postgresText returns how texts compare. In a deterministic collation texts are equal when their
// bytes are, whatever their order.
func postgresText(c plan.Column, trimmed, deterministic, bytewise bool, collation string) plan.Column {
	if !deterministic {
		c.Unsorted = "its collation " + collation + " treats different texts as equal"
		return c
	}
	c.Value, c.Collation = plan.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true}, "text "+collation // texts of two collations are not compared
	if trimmed {
		c.Value.As, c.Collation = plan.Trimmed, "bpchar "+collation
	}
	if !bytewise {
		c.Value.Unordered = "its collation " + collation + " is not C; write COLLATE \"C\" after it, or declare the column with COLLATE \"C\""
	}
	return c
}

// absentError is the error of a table whose columns PostgreSQL's catalog does not have. It has the SQLSTATE that
// a query of the table would get, so that both are known as dialect.NoTable.
type absentError struct{ table string }

func (e *absentError) Error() string    { return "columns of " + e.table + ": the table does not exist" }
func (e *absentError) SQLState() string { return "42P01" }
