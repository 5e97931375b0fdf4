// SPDX-License-Identifier: Apache-2.0

package combine

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
	"github.com/shardid/shardid/sharding/internal/proof"
	"github.com/shardid/shardid/sharding/internal/splice"
)

// Shards is a statement for several targets, and the combination of their results.
type Shards struct {
	Targets []Shard
	// Order is the order of the rows. Its columns are counted among the hidden ones: the last
	// columns of each result, which the caller does not get.
	Order         []merge.Key
	Offset, Count int64 // Count is -1 without a LIMIT
	Most          int64 // the largest number of rows of a target, -1 if unknown
	// Distinct are the hidden columns by which equal rows are found, if each row is wanted once.
	// They precede those of the order.
	Distinct []merge.Key
	// Locks says that the query locks rows. Shards are then queried one after another: two queries
	// that lock the same rows in parallel could wait for each other, each in one database.
	Locks bool
	Group *Group // nil for rows
	// Totals are columns of rows that count all rows of their shard. A negative number counts from the end of the
	// columns that the caller gets: -1 is the last of them.
	Totals []int
	// Asked are hidden columns of texts. Before the rows are combined, the rank of each text replaces it.
	Asked   []Asked
	Running []Running // columns of window functions of all rows
	Summed  int       // the number of hidden columns that Running adds or counts, which precede the others
	// Counted is the name of the only column that the caller gets: the number of the combined rows. It is "" if the caller
	// gets the rows.
	Counted string
}

// Asked is a column of texts whose order only a database knows: see [catalog.Value].
type Asked struct{ Column, Behind string }

// Group says how the groups of the shards are combined.
type Group struct {
	Keys    []merge.Key        // columns of the shards' rows
	Columns []merge.Aggregate  // of a combined group
	Shown   int                // the number of columns that the caller gets: the first ones
	Made    map[int]merge.Expr // the columns that are computed from others
	Having  merge.Expr         // nil without HAVING
	Windows []merge.Window     // the window functions over combined groups
	Args    []driver.Value     // of Made and Having
	Sort    []merge.Key        // of combined groups
}

// Shard is the text for one target.
type Shard struct {
	Target sharding.Target
	Text   string
	Args   []int // indexes of the statement's arguments, in the text's order
}

// String describes how the results are combined.
func (s *Shards) String() string {
	g := cmp.Or(s.Group, &Group{})
	var how []string
	for _, step := range []struct {
		is   bool
		says string
	}{
		{s.Group != nil, "groups are combined"},
		{g.Having != nil, "HAVING is applied to them"},
		{len(g.Windows) > 0, "window functions are computed over them"},
		{len(g.Sort) > 0, "they are sorted"},
		{len(s.Asked) > 0, "a database is asked for the order of texts"},
		{len(s.Totals) > 0, "counts of all rows are added up"},
		{len(s.Order) > 0, "rows are merged in their order"},
		{len(s.Running) > 0, "window functions are computed in this order"},
		{len(s.Distinct) > 0, "each row is returned once"},
		{s.Count >= 0, fmt.Sprintf("%d rows after the first %d", s.Count, s.Offset)},
		{s.Count < 0 && s.Offset > 0, fmt.Sprintf("all rows after the first %d", s.Offset)},
		{s.Counted != "", "they are counted"},
		{s.Locks, "shards are queried one after another"},
	} {
		if step.is {
			how = append(how, step.says)
		}
	}
	return strings.Join(how, "; ")
}

// IsGrouped reports whether groups are combined, and not rows.
func (c *Combination) IsGrouped() bool { return c.group != nil }

// Bind applies the arguments of LIMIT and OFFSET and of groups. It returns the combination without its Targets, the edits of
// each shard's text, and those of a second text whose rows are united with the first one's, nil for none. The limit of each
// shard is the sum of both.
func (c *Combination) Bind(args []any) (all *Shards, edits, others []splice.Edit, err error) {
	bound := c.Shards
	all = &bound
	if c.group != nil {
		group := c.group.Group
		all.Group = &group
		if group.Args, err = c.numbers(c.group.params, args, true); err != nil {
			return nil, nil, nil, err
		}
	}
	if _, err := c.numbers(c.integers, args, false); err != nil {
		return nil, nil, nil, err
	}
	if c.limit == nil {
		return all, c.edits, c.none, nil
	}
	if all.Count, err = c.number(c.limit.Count, args, -1); err != nil {
		return nil, nil, nil, err
	}
	if all.Offset, err = c.number(c.limit.Offset, args, 0); err != nil {
		return nil, nil, nil, err
	}
	if c.group != nil { // a shard returns all of its groups
		return all, c.edits, c.none, nil
	}
	limit := splice.Edit{Span: c.limit.Span}
	if !c.whole && all.Count >= 0 && all.Count <= math.MaxInt64-all.Offset {
		most := all.Count + all.Offset
		limit.With = "LIMIT " + strconv.FormatInt(most, 10)
		if all.Most < 0 || most < all.Most {
			all.Most = most
		}
	}
	return all, append(slices.Clip(c.edits), limit), c.none, nil
}

// numbers returns some arguments, which must be whole numbers or, in a group, numbers: only the database knows how texts and
// times compare with them, and a driver may cut a float beside an integer.
func (c *Combination) numbers(of []int, args []any, inGroup bool) ([]driver.Value, error) {
	all := make([]driver.Value, len(args))
	for _, i := range of {
		v, err := proof.Plain(proof.Operand{Param: i}.Value(args))
		if err != nil {
			return nil, fmt.Errorf("%w: argument %d: %w", sharding.ErrUnmergeable, i+1, err)
		}
		_, isFloat := v.(float64)
		n, isUnsigned := v.(uint64)
		_, isInteger := v.(int64)
		switch {
		case isUnsigned && c.engine != merge.MySQL && n <= math.MaxInt64: // only MySQL and MariaDB have a type for it
			all[i] = int64(n)
		case v == nil, isInteger, isUnsigned, isFloat && inGroup:
			all[i] = v
		case inGroup:
			return nil, fmt.Errorf("%w: HAVING compares with a %T; pass it as a number, or write the number into the text", sharding.ErrUnmergeable, v)
		default:
			return nil, fmt.Errorf("%w: how a result of argument %d compares depends on how its driver sends a %T; pass a whole number", sharding.ErrUnmergeable, i+1, v)
		}
	}
	return all, nil
}

// number returns the number of LIMIT or OFFSET, which is none if it is missing, if it is NULL on PostgreSQL, or if it is negative on
// SQLite. No table has as many rows as the numbers above int64 that MySQL accepts.
func (c *Combination) number(e sqlparse.Expr, args []any, none int64) (int64, error) {
	if e == nil {
		return none, nil
	}
	is, _ := proof.Constant(e)
	v, err := proof.Plain(is.Value(args))
	if c.engine == merge.PostgreSQL && v == nil && err == nil {
		return none, nil
	}
	if n, ok := v.(uint64); ok && (c.engine == merge.MySQL || n <= math.MaxInt64) {
		v = int64(min(n, math.MaxInt64))
	}
	if n, ok := v.(int64); ok && (n >= 0 || c.engine == merge.SQLite) {
		return max(n, none), nil
	}
	return 0, fmt.Errorf("%w: LIMIT and OFFSET must be integers from 0, not %v", sharding.ErrUnmergeable, v)
}
