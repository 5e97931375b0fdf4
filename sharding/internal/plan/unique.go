package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/sqlparse"
)

// A unique key holds on its own shard alone, unless one of its columns leads to the
// shard: then equal keys meet there. A statement that depends on a row with the same
// key (an upsert, IGNORE, REPLACE, an update of the key) would otherwise miss the row
// on another shard, and store a second one.

// conflicting takes in what an INSERT does where a row is there already.
func (b *builder) conflicting(in *sqlparse.Input, out *insertion) {
	for _, c := range in.Conflicts {
		b.depends(out, target(c))
	}
	if len(in.Conflicts) == 0 && (in.Ignore || in.Or == "REPLACE") {
		b.depends(out, nil)
	}
}

// target returns the columns of ON CONFLICT (a, b), nil where any key is meant.
func target(c sqlparse.Conflict) []string {
	var columns []string
	for _, e := range c.Target {
		column, ok := bare(e).(*sqlparse.Column)
		if !ok {
			return nil
		}
		columns = append(columns, strings.ToLower(column.Name.Parts[len(column.Name.Parts)-1].Name))
	}
	return columns
}

// depends refuses an insertion that depends on rows which another shard may have.
func (b *builder) depends(out *insertion, columns []string) {
	keys := [][]string{columns}
	if columns == nil {
		if keys = out.of.schema.Unique; !out.of.known {
			b.odd(out.of.table.Name, sharding.ErrCrossShard, "the unique keys of the table are not known, so the row may be on another shard; name the columns: ON CONFLICT (…)")
			return
		}
	}
	for _, key := range keys {
		if always, carried := out.of.meets(key); !always && carried == nil {
			b.odd(out.of.table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(key, ", ")+" may be on another shard; look it up first, or put "+out.of.table.Key+" into the unique key")
		} else if !always {
			out.carried = append(out.carried, carried.column)
		}
	}
}

// meets reports whether rows with an equal key are on one shard: always, or where
// the value of a column carries the slot.
func (r *reference) meets(key []string) (always bool, carried *lead) {
	for _, column := range key {
		switch l := r.lead(column); {
		case l == nil || l.holds == Other || l.holds == Folded:
		case l.always:
			return true, nil
		default:
			carried = l
		}
	}
	return false, carried
}

// rekeyed refuses to change a unique key that does not lead to the shard.
func (b *builder) rekeyed(c column) {
	for _, key := range c.of.schema.Unique {
		if !slices.Contains(key, c.name) {
			continue
		}
		if always, _ := c.of.meets(key); !always {
			b.odd(c.of.table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(key, ", ")+" may be on another shard; look it up first, or put "+c.of.table.Key+" into the unique key")
		}
	}
}
