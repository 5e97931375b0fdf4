package gormplugin

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// foldGroups makes one row of the rows that different shards have for a group.
func (m *merge) foldGroups(set *resultSet) error {
	index := map[string]int{}
	var folded [][]any
	for _, row := range set.rows {
		key, err := m.likeKey(set, row, m.groups)
		if err != nil {
			return err
		}
		at, known := index[key]
		if !known {
			index[key] = len(folded)
			folded = append(folded, row)
			continue
		}
		if err := m.foldInto(set, folded[at], row); err != nil {
			return err
		}
	}
	set.rows = folded
	return m.finish(set)
}

// likeKey is a text that is equal for rows with equal values in the columns.
func (m *merge) likeKey(set *resultSet, row []any, columns []int) (string, error) {
	var b strings.Builder
	for _, i := range columns {
		v := row[i]
		if n, ok := number(v); ok {
			fmt.Fprintf(&b, "n%s;", n.RatString())
			continue
		}
		switch v := v.(type) {
		case nil:
			b.WriteString("-;")
		case time.Time:
			fmt.Fprintf(&b, "t%s;", v.UTC().Format(time.RFC3339Nano))
		default:
			if m.likeness(set, i) == collated {
				return "", m.unmergeable(m.written(set.columns[i]) + " is a text, whose collation decides which values are equal")
			}
			fmt.Fprintf(&b, "%d%q;", rank(v), bytesOf(v))
		}
	}
	return b.String(), nil
}

// foldInto adds the aggregates of one row to those of another.
func (m *merge) foldInto(set *resultSet, to, from []any) (err error) {
	for i, it := range m.selection.items {
		if it.kind != foldItem {
			continue
		}
		if it.isExtreme() {
			to[i], err = m.extreme(set, i, it.function, to[i], from[i])
		} else {
			to[i], err = m.plus(to[i], from[i])
		}
		if err != nil {
			return err
		}
	}
	for i := len(m.selection.items); i < len(to); i++ {
		if strings.HasPrefix(m.hidden[i-len(m.selection.items)], "COUNT(") {
			if to[i], err = m.plus(to[i], from[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *merge) extreme(set *resultSet, i int, function string, a, b any) (any, error) {
	if a == nil {
		return b, nil
	}
	if b == nil {
		return a, nil
	}
	c, err := m.compare(set, i, a, b)
	if c > 0 == (function == "MIN") && c != 0 {
		return b, err
	}
	return a, err
}

// plus adds two sums. NULL is the sum of no rows.
func (m *merge) plus(a, b any) (any, error) {
	switch {
	case a == nil:
		return b, nil
	case b == nil:
		return a, nil
	}
	x, okX := a.(int64)
	y, okY := b.(int64)
	if okX && okY {
		if y > 0 && x > math.MaxInt64-y || y < 0 && x < math.MinInt64-y {
			return nil, m.unmergeable("a sum over several shards exceeds 64 bits")
		}
		return x + y, nil
	}
	if x, y := infinity(a), infinity(b); x != 0 || y != 0 {
		return infinite(x + y), nil
	}
	p, scaleP, okP := decimal(a)
	q, scaleQ, okQ := decimal(b)
	if !okP || !okQ {
		return nil, m.unmergeable(fmt.Sprintf("a sum over several shards of %T and %T", a, b))
	}
	sum := p.Add(p, q)
	if scaleP < 0 || scaleQ < 0 {
		f, _ := sum.Float64()
		return f, nil
	}
	return []byte(sum.FloatString(max(scaleP, scaleQ))), nil
}

// infinite is a sum with infinite floats in it: of both signs it is no number, for
// which SQLite has NULL.
func infinite(sign int) any {
	if sign == 0 {
		return nil
	}
	return math.Inf(sign)
}

// decimal returns the exact value of a number and how many digits stand behind
// the point of its text, -1 for a float.
func decimal(v any) (value *big.Rat, scale int, ok bool) {
	switch v.(type) {
	case float64, float32:
		value, ok = number(v)
		return value, -1, ok
	case []byte, string:
		text := string(bytesOf(v))
		value, ok = new(big.Rat).SetString(text)
		if point := strings.IndexByte(text, '.'); point >= 0 {
			scale = len(text) - point - 1
		}
		return value, scale, ok
	}
	value, ok = number(v)
	return value, 0, ok
}

// finish computes the averages, and gives the columns their own names and types.
func (m *merge) finish(set *resultSet) error {
	if m.changed {
		set.columns = append([]string(nil), set.columns...)
	}
	count := 0
	for i, it := range m.selection.items {
		if it.function != "AVG" {
			continue
		}
		for !strings.HasPrefix(m.hidden[count], "COUNT(") {
			count++
		}
		set.columns[i] = it.name
		if i < len(set.types) {
			set.types[i] = nil
		}
		for _, row := range set.rows {
			var err error
			if row[i], err = m.quotient(row[i], row[len(m.selection.items)+count]); err != nil {
				return err
			}
		}
		count++
	}
	return nil
}

// quotient is the average: with four more digits than the sum where the sum is a
// decimal, as MySQL has it, and a float otherwise.
func (m *merge) quotient(sum, count any) (any, error) {
	if sum == nil || infinity(sum) != 0 {
		return sum, nil
	}
	p, scale, okP := decimal(sum)
	n, _, okN := decimal(count)
	if !okP || !okN || n.Sign() == 0 {
		return nil, m.unmergeable(fmt.Sprintf("an average over several shards of %T and %T", sum, count))
	}
	if m.routing.mysql && scale >= 0 {
		return []byte(p.Quo(p, n).FloatString(scale + 4)), nil
	}
	x, _ := p.Float64()
	y, _ := n.Float64()
	return x / y, nil
}

// dropEqual keeps the first of equal rows.
func (m *merge) dropEqual(set *resultSet) error {
	columns := make([]int, len(set.columns))
	for i := range columns {
		columns[i] = i
	}
	seen := map[string]bool{}
	kept := set.rows[:0]
	for _, row := range set.rows {
		key, err := m.likeKey(set, row, columns)
		if err != nil {
			return err
		}
		if !seen[key] {
			seen[key] = true
			kept = append(kept, row)
		}
	}
	set.rows = kept
	return nil
}
