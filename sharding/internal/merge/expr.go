// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// ErrUnsupported: an expression, aggregate or division that this package does not support.
var ErrUnsupported = errors.New("merge: not supported")

func unsupported(what string) error { return fmt.Errorf("%w: %s", ErrUnsupported, what) }

// Dialect selects the arithmetic of expressions.
type Dialect struct {
	Engine Engine
	// Division is MySQL's division of decimals and of integers.
	Division Division
	// SortLength is max_sort_length of MySQL and MariaDB, the number of bytes of a text that they compare.
	SortLength int
	// Signed says that differences of MySQL and MariaDB may be negative although an operand is unsigned: NO_UNSIGNED_SUBTRACTION.
	Signed bool
	// Bytes says that the driver of PostgreSQL returns decimals as bytes, and not as strings.
	Bytes bool
	// Recoded says that the driver of PostgreSQL reads texts in another encoding than that of the database, in which their bytes
	// may have another order than the one that the collation C gives the texts.
	Recoded bool
}

// DefaultSortLength is the SortLength of a server that nobody has set up otherwise.
const DefaultSortLength = 1024

// IsMariaDB reports whether MariaDB computes, and not MySQL.
func (d Dialect) IsMariaDB() bool { return d.Engine == MySQL && !d.Division.Rounds }

// Engine is a family of databases.
type Engine uint8

// The engines. MySQL includes MariaDB.
const (
	MySQL Engine = iota + 1
	SQLite
	PostgreSQL
)

// Expr is an expression over the columns of a row and the arguments of the statement: in HAVING, or
// in a select list over aggregates. Its values are numbers, except those of [AsIs]; truth is 1, 0 or NULL. An Expr is
// immutable.
type Expr func(row, args []driver.Value) (number, error)

// Column returns the value of a column of the row.
func Column(i int, k Kind) Expr {
	return func(row, _ []driver.Value) (number, error) { return numberOf(row[i], k) }
}

// AsIs returns the value of a column of the row, which need not be a number. It may only be the result of a [Choice] that is the
// whole expression.
func AsIs(i int) Expr {
	return func(row, _ []driver.Value) (number, error) { return number{form: isOther, other: row[i]}, nil }
}

// Argument returns one of the arguments. PostgreSQL gives a parameter the type of the number beside it, so that a float
// beside a decimal is a decimal.
func Argument(d Dialect, i int) Expr {
	return func(_, args []driver.Value) (number, error) {
		if f, ok := args[i].(float64); ok && d.Engine == PostgreSQL && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return numberOf(strconv.FormatFloat(f, 'f', -1, 64), Decimal)
		}
		return numberOf(args[i], Stored)
	}
}

// WithDigits returns a number that shows at least as many digits after its point as a column of the row has.
func WithDigits(x Expr, column int) Expr {
	return func(row, args []driver.Value) (number, error) {
		o, err := x(row, args)
		s, _ := TextOf(row[column])
		_, fraction, _ := strings.Cut(s, ".")
		if n := len(fraction); (o.form == isInteger || o.form == isDecimal) && n > o.exact.shown {
			o.form, o.exact.shown = isDecimal, n // a server divides by the digits that the value has
		}
		return o, err
	}
}

// Unsigned returns an integer of MySQL or MariaDB of an unsigned type, which a driver may return like others. What is computed of it
// must not be negative.
func Unsigned(x Expr) Expr {
	return func(row, args []driver.Value) (number, error) {
		o, err := x(row, args)
		o.unsigned = o.unsigned || o.form == isInteger
		return o, err
	}
}

// Constant returns a literal of the statement.
func Constant(v driver.Value, k Kind) Expr {
	o, err := numberOf(v, k)
	return func(_, _ []driver.Value) (number, error) { return o, err }
}

// Filtered returns the rows for which the condition is true, as HAVING does.
func Filtered(rows Rows, condition Expr, args []driver.Value) Rows {
	return where(rows, func(row []driver.Value) (bool, error) {
		o, err := condition(row, args)
		return o.isTrue(), err
	})
}

// Computed replaces some columns of each row by expressions over other columns. The present value
// of such a column is NULL, or a value that the database has computed by the same expression, whose
// form the new value gets.
func Computed(d Dialect, rows Rows, columns map[int]Expr, args []driver.Value) Rows {
	if len(columns) == 0 {
		return rows
	}
	return where(rows, func(row []driver.Value) (bool, error) {
		for i, e := range columns {
			o, err := e(row, args)
			if err := d.put(row, i, o, err); err != nil {
				return false, fmt.Errorf("%w (%s)", err, rows.Columns()[i])
			}
		}
		return true, nil
	})
}

// strict evaluates one or two operands, and returns NULL if one of them is NULL.
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

// Arithmetic returns a op b; op is one of + - * /. It is NULL if an operand is NULL.
func Arithmetic(d Dialect, op byte, a, b Expr) Expr {
	return strict(func(x, y number) (number, error) { return d.arithmetic(op, x, y) }, a, b)
}

// Negated returns -x. That of a BIGINT UNSIGNED of MySQL is a BIGINT.
func Negated(d Dialect, x Expr) Expr {
	return strict(func(x, _ number) (number, error) {
		x.unsigned = false
		return d.arithmetic('*', number{form: isInteger, exact: wholeDecimal(-1)}, x)
	}, x)
}

// Round returns ROUND(x, digits); digits is not negative.
func Round(d Dialect, x Expr, digits int) Expr {
	return strict(func(x, _ number) (number, error) { return d.round(x, digits), nil }, x)
}

// Whole returns FLOOR(x), or CEIL(x) if up is set.
func Whole(x Expr, up bool) Expr {
	return strict(func(x, _ number) (number, error) { return x.whole(up), nil }, x)
}

// ToInteger returns CAST(x AS …) to a type of whole numbers with so many bits, which rounds. A number that does not fit is
// an error.
func ToInteger(d Dialect, x Expr, size int) Expr {
	return strict(func(x, _ number) (number, error) { return d.toInteger(x, size) }, x)
}

// Fitting returns x, which is an error if it is a whole number of more bits.
func Fitting(x Expr, size int) Expr {
	return strict(func(x, _ number) (number, error) {
		if x.form == isInteger && !x.exact.fits(size) {
			return x, ErrOverflow
		}
		return x, nil
	}, x)
}

// ToDecimal returns CAST(x AS DECIMAL(all, scale)). A float is an error. So is a number that does not fit; MySQL and MariaDB
// return the one that is nearest to it.
func ToDecimal(d Dialect, x Expr, all, scale int) Expr {
	return strict(func(x, _ number) (number, error) {
		if x.form == isFloat {
			return x, unsupported("a float as a decimal")
		}
		x.form, x.exact = isDecimal, x.exact.rounded(scale)
		switch most := power(all); {
		case x.exact.digits.CmpAbs(most) < 0:
		case d.Engine != MySQL:
			return x, ErrOverflow
		case x.exact.digits.Sign() < 0:
			x.exact.digits = most.Sub(big.NewInt(1), most)
		default:
			x.exact.digits = most.Sub(most, big.NewInt(1))
		}
		return x, nil
	}, x)
}

// Choice returns the result of the first condition that is true, as CASE does. Behind the results of
// the conditions there may be one for the case that none is true, which is otherwise NULL.
func Choice(conditions, results []Expr) Expr {
	return func(row, args []driver.Value) (number, error) {
		for i, condition := range conditions {
			if o, err := condition(row, args); err != nil || o.isTrue() {
				if err != nil {
					return o, err
				}
				return results[i](row, args)
			}
		}
		if len(results) == len(conditions) {
			return number{}, nil
		}
		return results[len(conditions)](row, args)
	}
}

// Coalesce returns the first value that is not NULL.
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

// NullIf returns NULL if a equals b, otherwise a. MariaDB compares them as it returns them.
func NullIf(d Dialect, a, b Expr) Expr {
	equal := strict(func(x, y number) (number, error) {
		if d.IsMariaDB() {
			x.exact, y.exact = x.exact.displayed(), y.exact.displayed()
		}
		return logical(d.compare(x, y) == 0), nil
	}, a, b)
	return func(row, args []driver.Value) (number, error) {
		o, err := equal(row, args)
		if o.isTrue() || err != nil {
			return number{}, err
		}
		return a(row, args)
	}
}

var comparisons = map[string][]int{"=": {0}, "<>": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

// Comparison returns a op b; op is one of = <> < <= > >=.
func Comparison(d Dialect, op string, a, b Expr) Expr {
	return strict(func(x, y number) (number, error) {
		return logical(slices.Contains(comparisons[op], d.compare(x, y))), nil
	}, a, b)
}

// And is true if all conditions are true, and false if one is false, even if others are NULL.
func And(conditions ...Expr) Expr { return junction(false, conditions) }

// Or is true if one condition is true, and false if all are false.
func Or(conditions ...Expr) Expr { return junction(true, conditions) }

// junction returns decides if a condition has this truth value.
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

// Not returns NULL for NULL.
func Not(condition Expr) Expr {
	return strict(func(x, _ number) (number, error) { return logical(!x.isTrue()), nil }, condition)
}

// IsNull returns true or false, never NULL.
func IsNull(x Expr) Expr {
	return func(row, args []driver.Value) (number, error) {
		o, err := x(row, args)
		return logical(o.form == isNull), err
	}
}
