// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
)

// ErrUnoffered: an expression, aggregate or division that is not combined here.
var ErrUnoffered = errors.New("merge: not offered")

func unoffered(what string) error { return fmt.Errorf("%w: %s", ErrUnoffered, what) }

// Dialect is whose arithmetic an expression follows.
type Dialect struct {
	Engine Engine
	// Division of decimals and of integers, on MySQL.
	Division Division
	// Bytes says of PostgreSQL that its driver gives decimals as bytes, and not as strings.
	Bytes bool
}

// Engine is a family of databases.
type Engine uint8

// The engines. MySQL stands for MariaDB, too.
const (
	MySQL Engine = iota + 1
	SQLite
	PostgreSQL
)

// Expr is an expression over the columns of a row and the arguments of the statement: of
// HAVING, or of a select list over aggregates. Its values are numbers; truth is 1, 0 or
// NULL. An Expr is immutable.
type Expr func(row, args []driver.Value) (number, error)

// Column is a column of the row.
func Column(i int, k Kind) Expr {
	return func(row, _ []driver.Value) (number, error) { return numberOf(row[i], k) }
}

// Argument is one of the arguments.
func Argument(i int) Expr {
	return func(_, args []driver.Value) (number, error) { return numberOf(args[i], Stored) }
}

// Constant is a value that is written in the statement.
func Constant(v driver.Value, k Kind) Expr {
	o, err := numberOf(v, k)
	return func(_, _ []driver.Value) (number, error) { return o, err }
}

// Filtered returns the rows for which the condition is true: HAVING.
func Filtered(rows Rows, condition Expr, args []driver.Value) Rows {
	return where(rows, func(row []driver.Value) (bool, error) {
		o, err := condition(row, args)
		return o.isTrue(), err
	})
}

// Computed puts expressions over other columns into some columns of each row. There they
// find a value that the database has made by the same expression, whose form they take, or
// NULL.
func Computed(d Dialect, rows Rows, columns map[int]Expr, args []driver.Value) Rows {
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		if err := rows.Next(dest); err != nil {
			return err
		}
		for i, e := range columns {
			o, err := e(dest, args)
			if err == nil {
				dest[i], err = d.like(o, dest[i])
			}
			if err != nil {
				return fmt.Errorf("%w (%s)", err, s.Columns()[i])
			}
		}
		return nil
	}
	return s
}

// strict evaluates one or two operands; it is NULL if one is.
func strict(f func(x, y number) (number, error), operands ...Expr) Expr {
	return func(row, args []driver.Value) (number, error) {
		var x [2]number
		null := false
		for i, e := range operands {
			var err error
			if x[i], err = e(row, args); err != nil {
				return number{}, err
			}
			null = null || x[i].form == isNull
		}
		if null {
			return number{}, nil
		}
		return f(x[0], x[1])
	}
}

// Arithmetic is a op b, op being one of + - * /. It is NULL where an operand is.
func Arithmetic(d Dialect, op byte, a, b Expr) Expr {
	return strict(func(x, y number) (number, error) { return d.arithmetic(op, x, y) }, a, b)
}

// Round is ROUND(x, digits) with digits from 0.
func Round(d Dialect, x Expr, digits int) Expr {
	return strict(func(x, _ number) (number, error) { return d.round(x, digits), nil }, x)
}

// Coalesce is the first value that is not NULL.
func Coalesce(list ...Expr) Expr {
	return func(row, args []driver.Value) (o number, err error) {
		for _, e := range list {
			if o, err = e(row, args); err != nil || o.form != isNull {
				return o, err
			}
		}
		return o, nil
	}
}

// NullIf is NULL where a equals b, else a.
func NullIf(d Dialect, a, b Expr) Expr {
	equal := Comparison(d, "=", a, b)
	return func(row, args []driver.Value) (number, error) {
		o, err := equal(row, args)
		if o.isTrue() || err != nil {
			return number{}, err
		}
		return a(row, args)
	}
}

var comparisons = map[string][]int{"=": {0}, "<>": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

// Comparison is a op b, op being one of = <> < <= > >=.
func Comparison(d Dialect, op string, a, b Expr) Expr {
	return strict(func(x, y number) (number, error) {
		return logical(slices.Contains(comparisons[op], d.compare(x, y))), nil
	}, a, b)
}

// And is true if all conditions are, and false if one is false, whatever is NULL.
func And(conditions ...Expr) Expr { return junction(false, conditions) }

// Or is true if one condition is, and false if all are false.
func Or(conditions ...Expr) Expr { return junction(true, conditions) }

// junction is decided by a condition of that truth.
func junction(decides bool, conditions []Expr) Expr {
	return func(row, args []driver.Value) (number, error) {
		answer := logical(!decides)
		for _, e := range conditions {
			o, err := e(row, args)
			if err != nil {
				return o, err
			}
			switch {
			case o.form == isNull:
				answer = number{}
			case o.isTrue() == decides:
				return logical(decides), nil
			}
		}
		return answer, nil
	}
}

// Not is NULL for NULL.
func Not(condition Expr) Expr {
	return strict(func(x, _ number) (number, error) { return logical(!x.isTrue()), nil }, condition)
}

// IsNull is true or false, never NULL.
func IsNull(x Expr) Expr {
	return func(row, args []driver.Value) (number, error) {
		o, err := x(row, args)
		return logical(o.form == isNull), err
	}
}
