package sqlstore

import (
	"context"
	"fmt"
	"math"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// highest returns the highest number that max_id holds.
func (s *Store) highest() int64 {
	if most := s.most.Load(); most > 0 {
		return most
	}
	return math.MaxInt64
}

// lookAtCounters looks once at the table that holds the counters: at what its column
// holds, and whether it outlives a crash. A table that is missing is found by the
// statements that use it.
func (s *Store) lookAtCounters(ctx context.Context, on session) error {
	if s.most.Load() > 0 {
		return nil
	}
	column, err := dialect.WholeNumbers(ctx, on.conn, on.server, "leaf_alloc", "max_id")
	if err != nil {
		return fmt.Errorf("look at leaf_alloc: %w", err)
	}
	if column.Type == "" {
		return nil
	}
	if column.Most == 0 {
		return &keygen.SetupError{
			Err:  fmt.Errorf("leaf_alloc.max_id is of the type %s, which does not hold every whole number exactly", column.Type),
			Cure: "make it a bigint, as `shardid schema` prints it",
		}
	}
	engine, err := dialect.Forgetful(ctx, on.conn, on.server, "leaf_alloc")
	if err != nil {
		return fmt.Errorf("look at leaf_alloc: %w", err)
	}
	if engine != "" {
		return &keygen.SetupError{
			Err:  fmt.Errorf("leaf_alloc is a table of the engine %s, which has no transactions: ranges that it has acknowledged can be gone after a crash of the server", engine),
			Cure: "change its engine (ALTER TABLE leaf_alloc ENGINE = InnoDB), and then see that max_id is above the ids in use",
		}
	}
	s.most.Store(column.Most)
	return nil
}
