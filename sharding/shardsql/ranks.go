// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding/internal/combine"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// Only PostgreSQL itself knows the order of texts in its collations: its versions and libraries order them differently. When all
// rows of the shards are in memory, one database sorts their texts, and the ranks are compared.

// ranked replaces texts whose order a database is asked for by their ranks. The rows are in memory then.
func (r reading) ranked(ctx context.Context, s *combine.Shards, sources []merge.Rows) ([]merge.Rows, error) {
	if len(s.Asked) == 0 {
		return sources, nil
	}
	held, err := holdAll(sources)
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
func holdAll(sources []merge.Rows) (all []*resultset.Held, err error) {
	memory := merge.NewMemory(resultset.MostMemory)
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

// rank replaces the texts of one column.
func (r reading) rank(ctx context.Context, s *combine.Shards, held []*resultset.Held, asked combine.Asked) error {
	at := slices.Index(held[0].Names, asked.Column)
	if at < 0 {
		return fmt.Errorf("%w: there is no %s", merge.ErrColumns, asked.Column)
	}
	ranks := map[string]int64{}
	var texts []string
	for _, h := range held {
		for _, row := range h.Rows {
			text, isText := textOf(row[at])
			if _, known := ranks[text]; isText && !known {
				ranks[text], texts = 0, append(texts, text)
			}
		}
	}
	if len(texts) > 0 {
		if err := r.askRanks(ctx, s.Targets[0].Target.DB, texts, asked.Collation, ranks); err != nil {
			return err
		}
	}
	for _, h := range held {
		for _, row := range h.Rows {
			if text, isText := textOf(row[at]); isText {
				row[at] = ranks[text]
			}
		}
	}
	return nil
}

func textOf(v driver.Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// askRanks stores the ranks of texts. Texts of a deterministic collation are equal only if their bytes are.
func (r reading) askRanks(ctx context.Context, database string, texts []string, collation string, ranks map[string]int64) (err error) {
	in, err := r.session.inner(ctx, r.pool(database))
	if err != nil {
		return err
	}
	text := "SELECT DENSE_RANK() OVER (ORDER BY x COLLATE " + collation + ") FROM unnest($1::text[]) WITH ORDINALITY AS t (x, n) ORDER BY n"
	rows, err := in.Query(ctx, r.each.sent(), text, []driver.NamedValue{{Ordinal: 1, Value: arrayOf(texts)}})
	if err != nil {
		return err
	}
	defer func() { err = dialect.JoinErrors(err, rows.Close()) }()
	row := make([]driver.Value, 1)
	for _, t := range texts {
		if err := rows.Next(row); err != nil {
			return err
		}
		rank, isNumber := row[0].(int64)
		if !isNumber {
			return fmt.Errorf("%w: a rank is a %T", merge.ErrValue, row[0])
		}
		ranks[t] = rank
	}
	return nil
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
