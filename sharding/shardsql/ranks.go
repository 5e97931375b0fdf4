// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// Only PostgreSQL itself knows the order of texts in its collations: its versions and libraries order them differently. It knows that
// of the members of an ENUM, too. When all rows of the shards are in memory, one database sorts their texts, and the ranks are compared.

// ranked replaces texts whose order a database is asked for by their ranks. The rows are in memory then.
func (r reading) ranked(ctx context.Context, s *combine.Shards, sources []merge.Rows, memory *merge.Memory) ([]merge.Rows, error) {
	if len(s.Asked) == 0 {
		return sources, nil
	}
	held, err := holdAll(sources, memory)
	if err != nil {
		return nil, err
	}
	for _, asked := range s.Asked {
		if err := r.rank(ctx, s, held, asked); err != nil {
			return nil, err
		}
	}
	for i, h := range held {
		sources[i] = h
	}
	return sources, nil
}

// holdAll reads the rows of all sources into memory, and closes all of them.
func holdAll(sources []merge.Rows, memory *merge.Memory) (all []*resultset.Held, err error) {
	for _, source := range sources {
		if err != nil {
			err = dialect.JoinErrors(err, source.Close())
			continue
		}
		var h *resultset.Held
		h, err = resultset.Hold(source, memory)
		all = append(all, h)
	}
	return all, err
}

// rank replaces the texts of one column. The merge refuses shards with other columns.
func (r reading) rank(ctx context.Context, s *combine.Shards, held []*resultset.Held, asked combine.Asked) error {
	ranks := map[string]int64{}
	var texts []string
	var cells []*driver.Value // of texts
	for _, h := range held {
		at := slices.Index(h.Names, asked.Column)
		for i := 0; at >= 0 && i < len(h.Rows); i++ {
			text, isText := merge.TextOf(h.Rows[i][at])
			if !isText {
				continue
			}
			cells = append(cells, &h.Rows[i][at])
			if _, known := ranks[text]; !known {
				ranks[text], texts = 0, append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if err := r.agree(ctx, s, asked.Behind); err != nil {
		return err
	}
	if err := r.askRanks(ctx, s.Targets[0].Target.DB, texts, asked.Behind, ranks); err != nil {
		return err
	}
	for _, cell := range cells {
		text, _ := merge.TextOf(*cell)
		*cell = ranks[text]
	}
	return nil
}

// definition selects what sorts texts: the members of an ENUM, or what a collation is, and the version of the library that knows
// it. PostgreSQL 15 and 17 moved the locale to columns of their own.
func definition(behind string) string {
	if strings.HasPrefix(behind, "::") {
		return "SELECT string_agg(quote_literal(enumlabel), ' ' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = pg_typeof(NULL" + behind + ")"
	}
	return `SELECT CONCAT_WS(' ', c.collprovider, COALESCE(to_jsonb(c) ->> 'colllocale', to_jsonb(c) ->> 'colliculocale', c.collcollate), to_jsonb(c) ->> 'collicurules',
			(SELECT to_jsonb(d) ->> 'daticurules' FROM pg_database d WHERE d.datname = current_database() AND c.collprovider = 'd'), c.collisdeterministic, pg_collation_actual_version(c.oid))
		FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
		WHERE c.collencoding IN (-1, pg_char_to_encoding(getdatabaseencoding())) AND pg_collation_for('' ` + behind + `) =
			CASE WHEN pg_collation_is_visible(c.oid) THEN '' ELSE quote_ident(n.nspname) || '.' END || quote_ident(c.collname)`
}

// agree refuses databases whose collations or ENUMs of one name order texts differently: each shard has sorted its rows, or chosen the
// least of them, in its own.
func (r reading) agree(ctx context.Context, s *combine.Shards, behind string) error {
	var firsts []sharding.Target // one of each database
	var pools []*sql.DB
	for _, shard := range s.Targets {
		if at := shard.Target; !slices.ContainsFunc(firsts, func(first sharding.Target) bool { return first.DB == at.DB }) {
			firsts, pools = append(firsts, at), append(pools, r.pool(ctx, at.DB))
		}
	}
	other, is, err := r.session.database.differing(pools, behind, func(i int) (string, error) {
		found, err := r.valuesOf(ctx, pools[i], definition(behind), nil)
		if err != nil {
			return "", &sharding.ShardError{Target: firsts[i], Err: err}
		}
		return fmt.Sprintf("%s", found), nil
	})
	if err != nil || other == 0 {
		return err
	}
	return &sharding.RouteError{Op: "query", Err: fmt.Errorf("%w: %s is %s in database %s, and %s in database %s", sharding.ErrSettings, behind, is[0], firsts[0].DB, is[other], firsts[other].DB),
		Hint: "give all databases the same collation or ENUM, and all servers the same version of its library"}
}

// askRanks stores the ranks of texts. Texts of a deterministic collation are equal only if their bytes are.
func (r reading) askRanks(ctx context.Context, database string, texts []string, behind string, ranks map[string]int64) error {
	text := "SELECT DENSE_RANK() OVER (ORDER BY x " + behind + ") FROM unnest($1::text[]) WITH ORDINALITY AS t (x, n) ORDER BY n"
	all, err := r.valuesOf(ctx, r.pool(ctx, database), text, []driver.NamedValue{{Ordinal: 1, Value: arrayOf(texts)}})
	if err != nil {
		return err
	}
	if len(all) != len(texts) {
		return fmt.Errorf("%w: %d texts have %d ranks", merge.ErrValue, len(texts), len(all))
	}
	for i, v := range all {
		rank, isNumber := v.(int64)
		if !isNumber {
			return fmt.Errorf("%w: a rank is a %T", merge.ErrValue, v)
		}
		ranks[texts[i]] = rank
	}
	return nil
}

// valuesOf returns the values of the only column of a query.
func (r reading) valuesOf(ctx context.Context, pool *sql.DB, text string, args []driver.NamedValue) (all []driver.Value, err error) {
	in, err := r.session.heldOrNew(ctx, pool)
	if err != nil {
		return nil, err
	}
	rows, err := in.Query(ctx, r.each.sent(), text, args)
	if err != nil {
		return nil, err
	}
	held, err := resultset.Hold(rows, merge.NewMemory(resultset.MostMemory))
	if err != nil {
		return nil, err
	}
	for _, row := range held.Rows {
		all = append(all, row[0])
	}
	return all, nil
}

// arrayOf writes an array of PostgreSQL.
func arrayOf(texts []string) string {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var out strings.Builder
	for i, text := range texts {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(`"` + quoted.Replace(text) + `"`)
	}
	return "{" + out.String() + "}"
}
