package shardsql

import (
	"database/sql/driver"
	"errors"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/plan"
)

// merged combines the rows of shards as the plan says.
func merged(sources []merge.Rows, s *plan.Shards) driver.Rows {
	columns := sources[0].Columns()
	var all merge.Rows
	switch {
	case len(s.Aggregates) > 0:
		all = merge.Grouped(merge.Concat(sources), merge.Grouping{Names: columns, Aggregates: s.Aggregates}, merge.NewMemory(answerMemory))
	case len(s.Order) > 0:
		keys := make([]merge.Key, len(s.Order))
		for i, o := range s.Order {
			keys[i] = merge.Key{Column: len(columns) - len(s.Order) + i, Type: o.Type, Desc: o.Desc, NullsFirst: o.NullsFirst}
		}
		all = merge.Ordered(sources, keys)
	default:
		all = merge.Concat(sources)
	}
	if s.Count >= 0 || s.Offset > 0 {
		all = merge.Limited(all, s.Offset, s.Count)
	}
	if len(s.Order) > 0 {
		all = merge.Cut(all, len(s.Order))
	}
	return &answer{all}
}

// answer is the rows of several shards. Its errors are those of sharding where the
// merge has found them.
type answer struct{ merge.Rows }

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
