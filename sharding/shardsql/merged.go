package shardsql

import (
	"database/sql/driver"
	"errors"
	"maps"
	"reflect"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// merged combines the rows of shards as the plan says.
func merged(sources []merge.Rows, s *plan.Shards) merge.Rows {
	memory := merge.NewMemory(answerMemory)
	if s.Group != nil {
		return groups(sources, s, memory)
	}
	columns := sources[0].Columns()
	hidden := len(s.Distinct) + len(s.Order)
	first := len(columns) - hidden
	var all merge.Rows
	if len(s.Order) > 0 {
		keys := make([]merge.Key, len(s.Order))
		for i, o := range s.Order {
			keys[i] = merge.Key{Column: first + len(s.Distinct) + i, Type: o.Type, Desc: o.Desc, NullsFirst: o.NullsFirst}
		}
		all = merge.Ordered(sources, keys)
	} else {
		all = merge.Concat(sources)
	}
	if len(s.Distinct) > 0 {
		keys := make([]merge.Key, len(s.Distinct))
		for i, t := range s.Distinct {
			keys[i] = merge.Key{Column: first + i, Type: t}
		}
		all = merge.Distinct(all, keys, memory)
	}
	return merge.Cut(limited(all, s), hidden)
}

func limited(all merge.Rows, s *plan.Shards) merge.Rows {
	if s.Count >= 0 || s.Offset > 0 {
		return merge.Limited(all, s.Offset, s.Count)
	}
	return all
}

// groups combines the groups of shards.
func groups(sources []merge.Rows, s *plan.Shards, memory *merge.Memory) merge.Rows {
	g := s.Group
	names := make([]string, len(g.Columns))
	copy(names, sources[0].Columns()[:g.Shown])
	all := merge.Grouped(merge.Concat(sources), merge.Grouping{Keys: g.Keys, Names: names, Aggregates: g.Columns}, memory)
	if g.Having != nil {
		all = merge.Filtered(all, g.Having, g.Args)
	}
	early, late := sortedBy(g)
	all = computed(all, g, early)
	if len(g.Sort) > 0 {
		all = merge.Sorted(all, g.Sort, memory)
	}
	all = computed(limited(all, s), g, late) // PostgreSQL divides by 0 for no group that is left out
	return merge.Cut(all, len(g.Columns)-g.Shown)
}

// sortedBy returns which of the computed columns the groups are sorted by, and the others.
func sortedBy(g *plan.Group) (by, others map[int]merge.Expr) {
	by, others = map[int]merge.Expr{}, maps.Clone(g.Made)
	for _, key := range g.Sort {
		if made, ok := others[key.Column]; ok {
			by[key.Column] = made
			delete(others, key.Column)
		}
	}
	return by, others
}

func computed(all merge.Rows, g *plan.Group, columns map[int]merge.Expr) merge.Rows {
	if len(columns) == 0 {
		return all
	}
	return merge.Computed(g.Dialect, all, columns, g.Args)
}

// answer is the rows of several shards. Its errors are those of sharding where the
// merge has found them.
type answer struct {
	merge.Rows

	types []columnType // of the first shard's rows
	end   func()       // of the queries' context
}

var (
	_ driver.RowsColumnTypeScanType         = (*answer)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*answer)(nil)
	_ driver.RowsColumnTypeLength           = (*answer)(nil)
	_ driver.RowsColumnTypeNullable         = (*answer)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*answer)(nil)
)

func (a *answer) ColumnTypeScanType(i int) reflect.Type   { return a.types[i].scan }
func (a *answer) ColumnTypeDatabaseTypeName(i int) string { return a.types[i].name }
func (a *answer) ColumnTypeLength(i int) (int64, bool) {
	return a.types[i].length, a.types[i].tellsLength
}
func (a *answer) ColumnTypeNullable(i int) (nullable, ok bool) {
	return a.types[i].nullable, a.types[i].tellsNullable
}
func (a *answer) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return a.types[i].precision, a.types[i].scale, a.types[i].tellsPrecision
}

func (a *answer) Close() error {
	defer a.end()
	return a.Rows.Close()
}

func (a *answer) Next(dest []driver.Value) error {
	err := a.Rows.Next(dest)
	if err == nil || isEOF(err) {
		return err
	}
	var memory *merge.MemoryError
	for _, of := range []error{merge.ErrValue, merge.ErrOrder, merge.ErrWidth, merge.ErrUnoffered} {
		if errors.Is(err, of) || errors.As(err, &memory) {
			return &sharding.RouteError{Op: "query", Err: errors.Join(sharding.ErrUnmergeable, err), Hint: "add a condition on the sharding key, so that one shard answers"}
		}
	}
	return err
}
