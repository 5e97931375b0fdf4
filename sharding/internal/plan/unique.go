package plan

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
)

// A unique key holds on its own shard alone, unless one of its columns leads to the
// shard: then equal keys meet there. A statement that depends on a row with the same
// key (an upsert, IGNORE, REPLACE, an update of the key) would otherwise miss the row
// on another shard, and store a second one: so it is looked for (lookup.go).

// conflicting takes in what an INSERT does where a row is there already.
func (b *builder) conflicting(st *sqlparse.Statement, out *insertion) {
	for _, c := range st.Insert.Conflicts {
		b.depends(out, target(c))
		for _, set := range c.Set {
			b.resets(out, set)
		}
	}
	if len(st.Insert.Conflicts) == 0 && (st.Insert.Ignore || st.Verb == sqlparse.Replace) {
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

// resets takes in that a row which is there gets a column of a unique key anew. It may be
// that of the new row, which is looked for where it is the primary key; of others a
// second one may come to be on another shard, as by INSERT.
func (b *builder) resets(out *insertion, set sqlparse.Assignment) {
	r := out.of
	if keeps(set, &scope{refs: []*reference{r}}) {
		return
	}
	for i, key := range r.schema.Unique {
		at := slices.IndexFunc(key, func(column string) bool { return assigns(set, column) })
		switch {
		case at < 0 || r.meets(key):
		case !renews(set, key[at]):
			b.odd(r.table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(key, ", ")+" may be on another shard; leave "+key[at]+" out of what a conflict sets")
		case i == 0:
			b.depends(out, key)
		}
	}
}

// renews reports whether an assignment gives a column the value that the new row has.
func renews(set sqlparse.Assignment, column string) bool {
	value := bare(set.Value)
	call, ok := value.(*sqlparse.Call)
	if ok && len(call.Args) == 1 && nameOf(call) == "values" {
		value = call.Args[0]
	}
	c, isColumn := bare(value).(*sqlparse.Column) // one of the table itself is kept
	return isColumn && len(set.Columns) == 1 && strings.EqualFold(c.Name.Parts[len(c.Name.Parts)-1].Name, column)
}

// depends takes in unique keys by which an insertion depends on rows that another shard
// may have; nil means all.
func (b *builder) depends(out *insertion, columns []string) {
	keys := [][]string{columns}
	if columns == nil {
		if keys = out.of.schema.Unique; !out.of.known {
			b.odd(out.of.table.Name, sharding.ErrCrossShard, "the unique keys of the table are not known, so the row may be on another shard; name the columns: ON CONFLICT (…)")
			return
		}
	}
	for _, key := range keys {
		known := slices.ContainsFunc(out.seeks, func(s seek) bool { return slices.Equal(s.columns, key) })
		if !known && !out.of.meets(key) {
			b.seek(out, key)
		}
	}
}

// seek takes in a unique key by which rows have to be looked for.
func (b *builder) seek(out *insertion, key []string) {
	s, table := seek{columns: key}, out.of.table.Name
	for _, column := range key {
		at := slices.IndexFunc(out.input.Columns, func(c sqlparse.Ident) bool { return strings.EqualFold(c.Name, column) })
		switch {
		case column == "":
			b.odd(table, sharding.ErrCrossShard, "a unique key has an expression, by which a row cannot be looked for on other shards; name the columns of another one: ON CONFLICT (…)")
			return
		case at < 0 && len(key) == 1:
			return // the database numbers the row, or gives it NULL
		case at < 0:
			b.odd(table, sharding.ErrCrossShard, "a row with the same "+strings.Join(key, ", ")+" may be on another shard; give "+column+" a value, by which it is looked for")
			return
		}
		s.at = append(s.at, at)
		if l := out.of.lead(column); l != nil {
			s.carried = append(s.carried, place{l, at})
		}
	}
	out.seeks = append(out.seeks, s)
}

// meets reports whether rows with an equal key are on one shard, whatever its values.
func (r *reference) meets(key []string) bool {
	return slices.ContainsFunc(key, func(column string) bool {
		l := r.lead(column)
		return l != nil && l.always && l.holds != Other && l.holds != Folded
	})
}

// rekey takes in that an UPDATE sets a column of a unique key. Where the key does not
// lead to the shard it has to be one value, which is looked for on the others.
func (b *builder) rekey(c column, value sqlparse.Expr, s *scope) {
	if same, ok := s.column(value); ok && same == c {
		return
	}
	for _, key := range c.of.schema.Unique {
		if !slices.Contains(key, c.name) || c.of.meets(key) {
			continue
		}
		v, ok := constant(value)
		if !ok || len(key) > 1 {
			b.odd(c.of.table.Name, sharding.ErrCrossShard, "a row with the same "+strings.Join(key, ", ")+" may be on another shard; look it up first, or put "+c.of.table.Key+" into the unique key")
			return
		}
		b.rekeyed = append(b.rekeyed, rekeyed{c.of, c.name, v})
	}
}
