// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

const (
	fdw         = "fdw"
	fdwSchema   = "shards" // the schema of the logical tables; the tables of a database are in shards_NAME
	longestName = 63       // the limit of PostgreSQL, which truncates longer names
)

// FDW returns the statements for psql with which one PostgreSQL reads all shards as if each table
// were one (fdw.sql), and those that remove them (fdw.undo.sql). The shards do not change, and
// nothing can be written to them in this way: it is for reports. The physical tables become foreign
// tables of postgres_fdw, and partitions of their logical table; see
// https://www.postgresql.org/docs/current/postgres-fdw.html. fdw.sql reads the columns from the
// shards.
//
// fdw.sql reads the address and the user of each database from the environment: EAST_HOST,
// EAST_PORT, EAST_DBNAME, EAST_USER and EAST_PASSWORD for a database named east. So no file
// contains a password.
//
// Each rule can be exported. For rules whose slot SQL can compute (low, bits, mod, offset and step)
// there is a function shards.TABLE_slot; a query with a condition on it queries one shard.
func FDW(r *sharding.Router) (Export, error) {
	f := &fdwWriter{names: map[string]string{}}
	f.servers(r)
	for _, l := range layouts(r) {
		if err := f.table(l); err != nil {
			return Export{}, err
		}
	}
	f.broadcasts(r)
	return Export{
		[]File{{"fdw.sql", fdwHead + f.head.String() + "BEGIN;\n" + f.body.String() + "COMMIT;\n"}, {"fdw.undo.sql", f.undo()}},
		append(f.notes, "Each shard is read at its own moment: a report that runs while rows are written may see an earlier state of one shard than of another.",
			"Export again after slots were moved or tables were added."),
	}, nil
}

const fdwHead = `-- Run it with psql as a user who may make extensions and servers. The tables are in the
-- schema ` + fdwSchema + `. See FDW of package export for what it takes from the environment.
\set ON_ERROR_STOP on
`

// fdwWriter collects the statements.
type fdwWriter struct {
	names      map[string]string // of schemas and servers, by the databases' names
	all        []string          // the databases in their order
	head, body strings.Builder
	notes      []string
}

// pg quotes a name.
func pg(name string) string { return dialect.Postgres{}.Quote(name) }

// servers declares the databases, each with a schema for its tables.
func (f *fdwWriter) servers(r *sharding.Router) {
	f.all = databases(r)
	var needed, asked []string // the variables, and the checks that they are set
	fmt.Fprintf(&f.body, "CREATE EXTENSION IF NOT EXISTS postgres_fdw;\nCREATE SCHEMA %s;\n", fdwSchema)
	for _, db := range f.all {
		name := pg(fdwSchema + "_" + db)
		f.names[db] = name
		var given []string
		for _, option := range []string{"host", "port", "dbname", "user", "password"} {
			variable := variable(db) + "_" + strings.ToUpper(option)
			own := strings.ToLower(variable)
			fmt.Fprintf(&f.head, "\\getenv %s %s\n", own, variable)
			needed, asked = append(needed, variable), append(asked, ":{?"+own+"}")
			given = append(given, option+" :'"+own+"'")
		}
		fmt.Fprintf(&f.body, "CREATE SCHEMA %s;\n", name)
		fmt.Fprintf(&f.body, "CREATE SERVER %s FOREIGN DATA WRAPPER postgres_fdw OPTIONS (%s, updatable 'false', truncatable 'false', async_capable 'true', fetch_size '1000');\n", name, strings.Join(given[:3], ", "))
		fmt.Fprintf(&f.body, "CREATE USER MAPPING FOR CURRENT_USER SERVER %s OPTIONS (%s);\n", name, strings.Join(given[3:], ", "))
	}
	f.body.WriteString(fdwLocales)
	fmt.Fprintf(&f.head, "SELECT NOT (%s) AS incomplete \\gset\n", strings.Join(asked, " AND "))
	fmt.Fprintf(&f.head, "\\if :incomplete\n\tDO $$ BEGIN RAISE EXCEPTION 'set the environment variables %s'; END $$;\n\\endif\n", strings.Join(needed, ", "))
}

// fdwLocales refuses a shard with another collation. The shard sorts and compares for the query,
// and the server that merges the results by its own order would miss rows. The columns of the
// locale have different names in PostgreSQL 17, 15 and before.
const fdwLocales = `DO $$
DECLARE
	shard record;
	locale text;
	here text := (SELECT COALESCE(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', d.datcollate::text) FROM pg_database d WHERE d.datname = current_database());
	there text;
BEGIN
	FOR shard IN SELECT s.srvname, o.option_value AS name FROM pg_foreign_server s, pg_options_to_table(s.srvoptions) o WHERE s.srvname LIKE 'shards\_%' AND o.option_name = 'dbname' LOOP
		FOREACH locale IN ARRAY ARRAY['datlocale', 'daticulocale', 'datcollate'] LOOP
			BEGIN
				EXECUTE format('CREATE FOREIGN TABLE shards.locale (datname name, locale text OPTIONS (column_name %L), datcollate text) SERVER %I OPTIONS (schema_name ''pg_catalog'', table_name ''pg_database'')', locale, shard.srvname);
				SELECT COALESCE(l.locale, l.datcollate) INTO there FROM shards.locale l WHERE l.datname = shard.name;
				DROP FOREIGN TABLE shards.locale;
				EXIT;
			EXCEPTION WHEN undefined_column THEN
				there := NULL;
			END;
		END LOOP;
		IF there IS DISTINCT FROM here THEN
			RAISE EXCEPTION 'texts of the database % have the locale %, and those of this one %', shard.name, there, here USING HINT = 'Run this file in a database that is made with the locale of the shards.';
		END IF;
	END LOOP;
END $$;
`

// imports creates foreign tables for some tables of a database, in a schema. It omits generated
// columns and NOT NULL: a partition with generated columns, or with another NOT NULL than the other
// partitions, could not be attached. The shards compute and check these themselves.
func (f *fdwWriter) imports(db, schema string, tables []string) {
	for i, table := range tables {
		tables[i] = pg(table)
	}
	fmt.Fprintf(&f.body, "IMPORT FOREIGN SCHEMA public LIMIT TO (%s) FROM SERVER %s INTO %s OPTIONS (import_generated 'false', import_not_null 'false');\n", strings.Join(tables, ", "), f.names[db], schema)
}

// table creates a logical table over its physical ones. Partitions and children are matched by the
// names of their columns, whose order may differ.
func (f *fdwWriter) table(l layout) error {
	if len(l.Name)+len("_slot") > longestName {
		return &RefusedError{fdw, l.Name, "its name is too long for the name of a function", "rename it"}
	}
	targets := l.distinct()
	for _, db := range f.all {
		var own []string
		for _, at := range targets {
			if at.DB == db {
				own = append(own, at.Table)
			}
		}
		if len(own) > 0 {
			f.imports(db, f.names[db], own)
		}
	}
	name := fdwSchema + "." + pg(l.Name)
	like := fmt.Sprintf("CREATE TABLE %s (LIKE %s)", name, f.at(targets[0]))
	slot, computed := l.sql()
	if !computed {
		fmt.Fprintf(&f.body, "%s;\nALTER TABLE %s ADD CONSTRAINT rows_are_on_shards CHECK (false) NO INHERIT;\n", like, name)
		for _, at := range targets {
			fmt.Fprintf(&f.body, "ALTER FOREIGN TABLE %s INHERIT %s;\n", f.at(at), name)
		}
		f.notes = append(f.notes, fmt.Sprintf("Each query on %s queries every shard, because SQL cannot compute its slots.", l.Name))
		return nil
	}
	function := fdwSchema + "." + pg(l.Name+"_slot")
	fmt.Fprintf(&f.body, "CREATE FUNCTION %s(key bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT %s $$;\n", function, slot)
	fmt.Fprintf(&f.body, "%s PARTITION BY LIST (%s(%s));\n", like, function, pg(l.Key))
	for _, at := range targets {
		var slots []string
		for slot, of := range l.targets {
			if of == at {
				slots = append(slots, strconv.Itoa(slot))
			}
		}
		fmt.Fprintf(&f.body, "ALTER TABLE %s ATTACH PARTITION %s FOR VALUES IN (%s);\n", name, f.at(at), strings.Join(slots, ", "))
	}
	f.notes = append(f.notes, fmt.Sprintf("A query on %s with %s = 5 AND %s(%[2]s) = %[3]s(5) queries one shard; any other query reads all shards.", l.Name, l.Key, fdwSchema+"."+l.Name+"_slot"))
	return nil
}

// at returns the foreign table of a target.
func (f *fdwWriter) at(target sharding.Target) string {
	return f.names[target.DB] + "." + pg(target.Table)
}

// sql returns the slot of a key, modulo the number of targets, as SQL computes it from a bigint;
// false for rules that SQL cannot compute.
func (l layout) sql() (text string, ok bool) {
	n := len(l.targets)
	if l.rule.Kind == sharding.KindBits {
		return fmt.Sprintf("(key >> %d) & %d", l.rule.Shift, n-1), true
	}
	shift, isModulo := l.shift()
	return fmt.Sprintf("((key %% %d) + %d) %% %[1]d", n, n+shift%n), isModulo
}

// broadcasts declares broadcast tables, which are read from the first database.
func (f *fdwWriter) broadcasts(r *sharding.Router) {
	if names := r.Broadcasts(); len(names) > 0 && len(f.all) > 0 {
		f.imports(f.all[0], fdwSchema, slices.Clone(names))
	}
}

// undo removes everything except the extension.
func (f *fdwWriter) undo() string {
	var out strings.Builder
	out.WriteString("\\set ON_ERROR_STOP on\nBEGIN;\nDROP SCHEMA IF EXISTS " + fdwSchema + " CASCADE;\n")
	for _, db := range f.all {
		fmt.Fprintf(&out, "DROP SCHEMA IF EXISTS %s CASCADE;\nDROP SERVER IF EXISTS %[1]s CASCADE;\n", f.names[db])
	}
	out.WriteString("COMMIT;\n")
	return out.String()
}
