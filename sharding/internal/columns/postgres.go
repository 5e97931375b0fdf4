// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// postgresTypes selects the columns of a table of PostgreSQL with their types, those of domains
// resolved. A collation compares bytes if it is C, by its own name or as the database's, or if its
// provider is builtin, which compares code points. Its order is that of the bytes which the driver reads if the encoding keeps it.
const postgresTypes = `SELECT a.attname::text, b.typname::text, b.typtype::text, COALESCE(k.collisdeterministic, TRUE),
		` + dialect.KeepsOrder + ` AND CASE WHEN k.collname IS NULL THEN TRUE
			WHEN k.collprovider = 'd' THEN COALESCE(to_jsonb(d) ->> 'datlocprovider', 'c') = 'b' OR COALESCE(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c' AND d.datcollate IN ('C', 'POSIX')
			ELSE k.collprovider = 'b' OR k.collprovider = 'c' AND k.collcollate IN ('C', 'POSIX') END,
		CASE WHEN k.collprovider = 'd' THEN COALESCE(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', d.datcollate::text) ELSE COALESCE(k.collname::text, '') END,
		CASE WHEN b.typtype = 'e' THEN '::' || quote_ident(own.nspname) || '.' || quote_ident(b.typname) ELSE COALESCE('COLLATE ' || quote_ident(n.nspname) || '.' || quote_ident(k.collname), '') END,
		(SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = a.attrelid)
	FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
		JOIN pg_database d ON d.datname = current_database() JOIN pg_namespace own ON own.oid = b.typnamespace
		LEFT JOIN pg_collation k ON k.oid = a.attcollation LEFT JOIN pg_namespace n ON n.oid = k.collnamespace
	WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped`

// postgresKinds maps the names of types other than texts.
var postgresKinds = map[string]catalog.Value{
	"int2": {Type: merge.Type{Kind: merge.Integer}, Narrow: true}, "int4": catalog.OfKind(merge.Integer), "int8": {Type: merge.Type{Kind: merge.Integer}, Wide: true},
	"bool": catalog.OfKind(merge.Integer), "numeric": catalog.OfKind(merge.Decimal), "float4": {Type: merge.Type{Kind: merge.Float}, As: catalog.Double}, "float8": catalog.OfKind(merge.Float),
	"date": catalog.OfKind(merge.Time), "timestamp": catalog.OfKind(merge.Time), "timestamptz": catalog.OfKind(merge.Time), "bytea": catalog.OfKind(merge.Bytes), "uuid": catalog.OfKind(merge.Bytes),
}

// postgresColumns reads the columns of a table of PostgreSQL from the catalogue. A query of the
// table itself could fail, which would abort the transaction that executes it.
func (r reader) postgresColumns(ctx context.Context) (catalog.Table, error) {
	t := catalog.Table{Columns: map[string]catalog.Column{}}
	err := dialect.Each(ctx, r.db, func(rows *sql.Rows) error {
		var name, typ, class, collation, behind string
		var deterministic, bytewise bool
		if err := rows.Scan(&name, &typ, &class, &deterministic, &bytewise, &collation, &behind, &t.Namespace); err != nil {
			return err
		}
		c := catalog.Column{Value: postgresKinds[typ]}
		switch typ {
		case "int2", "int4", "int8":
			c.Holds = catalog.Integers
		case "bytea":
			c.Holds, c.Collation = catalog.Bytes, catalog.AsBytes
		case "uuid", "date", "time", "timestamp", "timestamptz":
			c.Collation = typ
		case "text", "varchar", "bpchar", "name":
			if c = postgresText(typ, deterministic, bytewise, collation); c.Value.Unordered != "" {
				c.Value.Behind = behind
			}
		default:
			if class == "e" {
				c.Value = catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Unordered: "the members of " + typ + " sort in the order of their declaration", Behind: behind}
			} else if c.Value.Type.Kind == 0 {
				c.JSON = typ == "json" || typ == "jsonb"
				c.Unsorted = "how values of type " + typ + " compare is not known"
			}
		}
		c.Name = name
		if _, twice := t.Columns[strings.ToLower(name)]; twice {
			t.Ambiguous = name
		}
		t.Columns[strings.ToLower(name)] = c
		return nil
	}, postgresTypes, r.table)
	switch {
	case err != nil:
		return catalog.Table{}, fmt.Errorf("columns of %s: %w", r.table, err)
	case len(t.Columns) == 0:
		return catalog.Table{}, &absentError{r.table}
	}
	return t, nil
}

// postgresText returns how texts of a type compare. In a deterministic collation they are equal if their bytes are.
func postgresText(typ string, deterministic, bytewise bool, collation string) (c catalog.Column) {
	if !deterministic {
		c.Unsorted = "its collation " + collation + " treats different texts as equal"
		return c
	}
	c.Value, c.Collation = catalog.Value{Type: merge.Type{Kind: merge.Bytes}, Texts: true}, "text "+collation // texts of two collations are not compared
	switch typ {
	case "bpchar":
		c.Value.As, c.Collation = catalog.Trimmed, "bpchar "+collation
	case "name":
		c.Collation = "" // an argument beside it would be cut to 63 bytes
	}
	switch {
	case bytewise:
	case collation == "C" || collation == "POSIX":
		c.Value.Unordered = "the driver reads it in another encoding than that of the database, in which texts of the collation C may have another order"
	default:
		c.Value.Unordered = "its collation " + collation + " is not C; write COLLATE \"C\" after it, or declare the column with COLLATE \"C\""
	}
	return c
}

// absentError is the error of a table whose columns PostgreSQL's catalog does not have. It has the SQLSTATE that
// a query of the table would get, so that both are known as dialect.NoTable.
type absentError struct{ table string }

func (e *absentError) Error() string    { return "columns of " + e.table + ": the table does not exist" }
func (e *absentError) SQLState() string { return "42P01" }
