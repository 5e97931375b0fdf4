// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/internal/backend"
	"github.com/shardid/shardid/schema/internal/openjob"
)

// postgresTable checks a table of PostgreSQL.
type postgresTable struct{ probe }

// look checks the definition of the table.
func (p postgresTable) look(ctx context.Context) error {
	for _, look := range []func(context.Context) error{p.columns, p.counter, p.rights, p.published, p.draft} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// ofTable is the FROM of queries on a table of the schema, which has the alias c.
const ofTable = " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema() "

func (p postgresTable) columns(ctx context.Context) error {
	generated, err := p.List(ctx, "SELECT a.attname"+ofTable+"JOIN pg_attribute a ON a.attrelid = c.oid AND a.attgenerated <> '' AND NOT a.attisdropped WHERE c.relname = ? ORDER BY a.attnum", p.shape.Name)
	if err != nil {
		return err
	}
	if len(generated) > 0 {
		p.add(GeneratedColumns, Info, "the columns "+strings.Join(generated, ", ")+" are computed by each database", "nothing, if the shards' servers compute them alike")
	}
	counted, err := p.List(ctx, "SELECT a.attname"+ofTable+"JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"+
		" WHERE c.relname = ? AND (a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%') AND a.attname <> ? ORDER BY a.attnum", p.shape.Name, p.shape.Key)
	for _, name := range counted {
		p.add(OtherCounter, Warn, name+" is numbered by the table; the shards' tables will not number it", "let the application set its values from the switch on, or drop it")
	}
	if err != nil {
		return err
	}
	checks, err := p.Number(ctx, "SELECT COUNT(*)"+ofTable+"JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'c' WHERE c.relname = ?", p.shape.Name)
	if err == nil && checks > 0 {
		p.add(Checks, Info, fmt.Sprintf("it has CHECK constraints (%d), and so will the shards' tables", checks), "nothing")
	}
	return err
}

// counter checks how much of the ranges of the key's type and of its sequence is used.
func (p postgresTable) counter(ctx context.Context) error {
	column, err := dialect.WholeNumbers(ctx, p, dialect.Postgres{}, p.shape.Name, p.shape.Key)
	if err != nil {
		return err
	}
	most := cmp.Or(column.Most, math.MaxInt64)
	if most != math.MaxInt64 {
		p.add(NarrowKey, Info, narrowKey(p.shape.Key, column.Type), narrowFix)
	}
	highest, err := p.Number(ctx, fmt.Sprintf("SELECT MAX(%s) FROM %s", p.Database.Quote(p.shape.Key), p.Database.Quote(p.shape.Name)))
	if used := float64(highest) / float64(most); err == nil && used >= 0.5 {
		p.add(RangeUsed, Warn, fmt.Sprintf("%.0f %% of the range of %s is used", 100*used, column.Type), "finish the migration before inserts fail")
	}
	return err
}

// rights finds other users of the table: the shards' tables belong to the job's user, so
// the others need grants.
func (p postgresTable) rights(ctx context.Context) error {
	others, err := p.List(ctx, "SELECT DISTINCT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(g.grantee) END"+ofTable+
		"CROSS JOIN LATERAL aclexplode(c.relacl) g WHERE c.relname = ? AND g.grantee NOT IN (c.relowner, (SELECT oid FROM pg_roles WHERE rolname = current_user)) ORDER BY 1", p.shape.Name)
	if err == nil && len(others) > 0 {
		p.add(Privileges, Warn, "others have rights on it ("+strings.Join(others, ", ")+"); run gives them none on the shards' tables, which belong to the user of the job",
			"after the run and before the switch, GRANT them the same on the shards' tables")
	}
	p.others[p.shape.Name] = others
	return err
}

// grants finds users of the source's table who have no rights on a shard's table, which may be sealed.
func (p shardProbe) grants(ctx context.Context, table, name string) error {
	others := p.others[table]
	if len(others) == 0 {
		return nil
	}
	have, err := p.List(ctx, "SELECT CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(g.grantee) END"+ofTable+
		"CROSS JOIN LATERAL aclexplode(c.relacl) g WHERE c.relname IN (?, ?)", name, backend.Sealed(name))
	missing := slices.DeleteFunc(slices.Clone(others), func(user string) bool { return slices.Contains(have, user) })
	if err == nil && len(missing) > 0 {
		p.add(Privileges, Warn, "some have rights on "+table+" of the source, and none here: "+strings.Join(missing, ", "), "GRANT them the same here before the switch")
	}
	return err
}

// published finds publications that replicate the table's rows.
func (p postgresTable) published(ctx context.Context) error {
	names, err := p.List(ctx, "SELECT DISTINCT pubname FROM pg_publication_tables WHERE schemaname = current_schema() AND tablename = ? ORDER BY 1", p.shape.Name)
	if err == nil && len(names) > 0 {
		p.add(OutsideJob, Warn, "it is published ("+strings.Join(names, ", ")+"); subscribers do not get rows that are written to the shards", "let them subscribe to the shards' tables at the switch")
	}
	return err
}

// draft stores the definition that shards are asked to create later.
func (p postgresTable) draft(ctx context.Context) error {
	made, err := p.Database.TargetDefinition(ctx, p.Session, p.shape, tried)
	if errors.Is(err, backend.ErrUnsupported) {
		p.add(Unsupported, Block, plain(err), "leave the table out, or change it as the message says")
		return nil
	}
	p.drafts[p.settings().Name] = draft{definition: strings.Join(made, "; ")}
	return err
}

// postgresMakes creates the table on a server with shards and rolls that back: there is no
// other way to find types, functions, collations or rights that the server lacks.
func (p shardProbe) postgresMakes(ctx context.Context, t openjob.TableConfig) error {
	d, known := p.drafts[t.Name]
	if !known {
		return nil
	}
	err := p.Exec(ctx, "BEGIN; "+d.definition)
	if undo := p.Exec(ctx, "ROLLBACK"); undo != nil {
		return undo
	}
	if err != nil && !p.Database.MayPass(err) {
		p.add(RowFormat, Block, fmt.Sprintf("the database does not create the table of %s: %v", t.Name, err), "create the missing objects here, or create this table by hand in a form that the database accepts")
		return nil
	}
	return err
}

// postgresSource checks the database of the source.
func (p serverProbe) postgresSource(ctx context.Context) error {
	for _, look := range []func(context.Context) error{p.postgresDatabase, p.otherWriters, p.transactions, p.postgresPrepared, p.settings, p.postgresSize} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// postgresShard checks a database with shards.
func (p serverProbe) postgresShard(ctx context.Context) error {
	if err := p.postgresDatabase(ctx); err != nil {
		return err
	}
	if err := p.settings(ctx); err != nil {
		return err
	}
	return p.otherWriters(ctx)
}

// postgresDatabase makes the checks that every database needs.
func (p serverProbe) postgresDatabase(ctx context.Context) error {
	var creates bool
	var schema, full, synced string
	err := p.QueryRowContext(ctx, "SELECT has_schema_privilege(current_schema(), 'CREATE'), current_schema(), current_setting('full_page_writes'), current_setting('fsync')").Scan(&creates, &schema, &full, &synced)
	if err != nil {
		return err
	}
	if !creates {
		p.add(Privileges, Block, "the user may not create tables in the schema "+schema, "GRANT CREATE, USAGE ON SCHEMA "+p.Database.Quote(schema)+" to it")
	}
	if full == "off" || synced == "off" {
		p.add(Durability, Warn, "fsync is "+synced+" and full_page_writes "+full+": a crash of the machine may lose commits or corrupt the database",
			"turn both on until the migration is finalized; after a crash, verify")
	}
	return nil
}

// postgresPrepared finds prepared transactions, which keep their locks without a connection.
func (p serverProbe) postgresPrepared(ctx context.Context) error {
	prepared, err := p.Number(ctx, "SELECT COUNT(*) FROM pg_prepared_xacts WHERE database = current_database()")
	if err == nil && prepared > 0 {
		p.add(Prepared, Warn, fmt.Sprintf("pg_prepared_xacts lists %d prepared transactions, whose locks would keep the switch waiting", prepared), "COMMIT PREPARED or ROLLBACK PREPARED each")
	}
	return err
}

func (p serverProbe) postgresSize(ctx context.Context) error {
	var bytes int64
	for _, t := range p.cfg.Tables {
		n, err := p.Number(ctx, "SELECT pg_total_relation_size(c.oid)"+ofTable+"WHERE c.relname = ?", t.Name)
		if err != nil {
			return err
		}
		bytes += n
	}
	p.size(bytes)
	return nil
}
