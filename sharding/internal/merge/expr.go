package merge

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// ErrUnoffered: an expression, aggregate or division that is not combined here.
var ErrUnoffered = errors.New("merge: not offered")

func unoffered(what string) error { return fmt.Errorf("%w: %s", ErrUnoffered, what) }

// Dialect is whose arithmetic an expression follows.
type Dialect struct {
	Engine Engine
	// Division of decimals and of integers, on MySQL.
	Division Division
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
type Expr func(row, args []driver.Value) (operand, error)

// operand is a value in an expression: NULL, a float, an integer, or a decimal.
type operand struct {
	form  form
	float float64
	exact decimal
	text  bool // the decimal was a string
}

type form uint8

const (
	isNull form = iota
	isInteger
	isDecimal
	isFloat
)

func logical(b bool) operand { return operand{form: isInteger, exact: wholeDecimal(truth(b))} }

// Column is a column of the row.
func Column(i int, k Kind) Expr {
	return func(row, _ []driver.Value) (operand, error) { return operandOf(row[i], k) }
}

// Argument is one of the arguments.
func Argument(i int) Expr {
	return func(_, args []driver.Value) (operand, error) { return operandOf(args[i], Stored) }
}

// Constant is a value that is written in the statement.
func Constant(v driver.Value, k Kind) Expr {
	o, err := operandOf(v, k)
	return func(_, _ []driver.Value) (operand, error) { return o, err }
}

func operandOf(v driver.Value, k Kind) (o operand, err error) {
	if v == nil {
		return operand{}, nil
	}
	if k == Stored {
		switch v.(type) {
		case int64, bool:
			k = Integer
		case float64:
			k = Float
		}
	}
	var ok bool
	switch k {
	case Integer:
		o.form = isInteger
		o.exact, ok = decimalOf(v)
		ok = ok && o.exact.scale == 0
	case Decimal:
		o.form = isDecimal
		o.exact, ok = decimalOf(v)
		_, o.text = v.(string)
	case Float:
		o.form = isFloat
		o.float, ok = floatOf(v)
	default:
		return o, unoffered("an expression over what is no number")
	}
	if !ok {
		return o, unexpected(k, v)
	}
	return o, nil
}

// result is the value as the driver would have given it.
func (o operand) result() driver.Value {
	switch {
	case o.form == isNull:
		return nil
	case o.form == isFloat:
		return o.float
	case o.form == isDecimal && o.text:
		return string(o.exact.text())
	case o.form == isDecimal:
		return o.exact.text()
	case o.exact.digits.IsUint64() && !o.exact.digits.IsInt64():
		return o.exact.digits.Uint64()
	}
	return o.exact.digits.Int64()
}

// like is the value in the form of another one, which the database has computed by the
// same expression: with as many digits behind its point.
func (o operand) like(v driver.Value) (driver.Value, error) {
	s, isText := textOf(v)
	if _, whole := v.(int64); whole && o.form == isDecimal && o.exact.shown() == 0 {
		o.form, o.exact.digits = isInteger, o.exact.rounded()
		return o.result(), nil
	}
	if !isText || o.form == isNull {
		return o.result(), nil
	}
	_, fraction, _ := strings.Cut(s, ".")
	missing := len(fraction) - o.exact.shown()
	if missing < 0 || o.form == isFloat {
		return nil, unoffered("a number with other digits than its database shows")
	}
	_, o.text = v.(string)
	o.form, o.exact = isDecimal, decimal{digits: new(big.Int).Mul(o.exact.rounded(), power(missing)), scale: len(fraction)}
	return o.result(), nil
}

func (o operand) asFloat() float64 {
	if o.form == isFloat {
		return o.float
	}
	return o.exact.float()
}

// isTrue tells a condition's truth; NULL is known to be neither.
func (o operand) isTrue() (truth, known bool) {
	switch o.form {
	case isNull:
		return false, false
	case isFloat:
		return o.float != 0, true
	}
	return o.exact.sign() != 0, true
}

// Filtered returns the rows for which the condition is true: HAVING.
func Filtered(rows Rows, condition Expr, args []driver.Value) Rows {
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		for {
			if err := rows.Next(dest); err != nil {
				return err
			}
			o, err := condition(dest, args)
			if err != nil {
				return err
			}
			if ok, _ := o.isTrue(); ok {
				return nil
			}
		}
	}
	return s
}

// Computed puts expressions over other columns into some columns of each row. There they
// find a value that the database has made by the same expression, whose form they take, or
// NULL.
func Computed(rows Rows, columns map[int]Expr, args []driver.Value) Rows {
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		if err := rows.Next(dest); err != nil {
			return err
		}
		for i, e := range columns {
			o, err := e(dest, args)
			if err == nil {
				dest[i], err = o.like(dest[i])
			}
			if err != nil {
				return fmt.Errorf("%w (%s)", err, s.Columns()[i])
			}
		}
		return nil
	}
	return s
}

// binaryOf evaluates both operands; NULL if one is.
func binaryOf(a, b Expr, f func(x, y operand) (operand, error)) Expr {
	return func(row, args []driver.Value) (operand, error) {
		x, err := a(row, args)
		if err != nil {
			return x, err
		}
		y, err := b(row, args)
		if err != nil || x.form == isNull || y.form == isNull {
			return operand{}, err
		}
		return f(x, y)
	}
}

// Arithmetic is a op b, op being one of + - * /. It is NULL where an operand is.
func Arithmetic(d Dialect, op byte, a, b Expr) Expr {
	return binaryOf(a, b, func(x, y operand) (operand, error) {
		switch {
		case op == '/' && y.asFloat() == 0:
			if d.Engine == PostgreSQL {
				return x, ErrDivision
			}
			return operand{}, nil
		case x.form == isFloat || y.form == isFloat:
			return floatArithmetic(op, x.asFloat(), y.asFloat()), nil
		}
		return d.exactArithmetic(op, x, y)
	})
}

func floatArithmetic(op byte, x, y float64) operand {
	f := x / y
	switch op {
	case '+':
		f = x + y
	case '-':
		f = x - y
	case '*':
		f = x * y
	}
	if math.IsNaN(f) {
		return operand{}
	}
	return operand{form: isFloat, float: f}
}

func (d Dialect) exactArithmetic(op byte, x, y operand) (operand, error) {
	o := operand{form: max(x.form, y.form), text: x.text || y.text}
	switch op {
	case '+':
		o.exact = x.exact.plus(y.exact)
	case '-':
		o.exact = x.exact.minus(y.exact)
	case '*':
		o.exact = x.exact.times(y.exact)
	default:
		return d.quotient(o, x, y)
	}
	if o.form == isInteger {
		return d.inRange(op, o, x, y)
	}
	if over := o.exact.shown() - d.Division.Most; over > 0 {
		return o, unoffered("a product with too many digits after its point")
	}
	return o, nil
}

// inRange answers an integer that is too large as the database does: with a float on
// SQLite, else with an error.
func (d Dialect) inRange(op byte, o, x, y operand) (operand, error) {
	switch {
	case o.exact.digits.IsInt64():
		return o, nil
	case d.Engine == SQLite:
		return floatArithmetic(op, x.asFloat(), y.asFloat()), nil
	}
	return o, ErrOverflow
}

// quotient divides what are no floats: MySQL makes decimals, the others cut off.
func (d Dialect) quotient(o, x, y operand) (operand, error) {
	switch {
	case d.Engine == MySQL:
		o.form, o.exact = isDecimal, x.exact.over(y.exact, d.Division)
		return o, nil
	case o.form == isInteger:
		o.exact = decimal{digits: new(big.Int).Quo(x.exact.at(0), y.exact.at(0))}
		return d.inRange('/', o, x, y)
	}
	return o, unoffered("a quotient of decimals on PostgreSQL")
}

// Round is ROUND(x, digits) with digits from 0.
func Round(d Dialect, x Expr, digits int) Expr {
	return func(row, args []driver.Value) (operand, error) {
		o, err := x(row, args)
		switch {
		case err != nil || o.form == isNull:
		case d.Engine == SQLite:
			o = operand{form: isFloat, float: roundHalfUp(o.asFloat(), digits)}
		case o.form == isFloat:
			if unit := math.Pow10(digits); !math.IsInf(o.float*unit, 0) {
				o.float = math.RoundToEven(o.float*unit) / unit
			}
		case o.exact.scale > digits:
			o.exact.fewer = o.exact.scale - digits
			o.exact = decimal{digits: o.exact.rounded(), scale: digits}
		default:
			o.exact.fewer = 0
		}
		return o, err
	}
}

// roundHalfUp rounds all digits of a float, halves away from zero.
func roundHalfUp(f float64, digits int) float64 {
	if math.Abs(f) >= 1<<52 {
		return f
	}
	d, _ := decimalOf(strconv.FormatFloat(f, 'f', 1074, 64))
	d.fewer = d.scale - digits
	return decimal{digits: d.rounded(), scale: digits}.float()
}

// Coalesce is the first value that is not NULL.
func Coalesce(list ...Expr) Expr {
	return func(row, args []driver.Value) (o operand, err error) {
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
	return func(row, args []driver.Value) (operand, error) {
		o, err := equal(row, args)
		if is, _ := o.isTrue(); is || err != nil {
			return operand{}, err
		}
		return a(row, args)
	}
}

var comparisons = map[string][]int{"=": {0}, "<>": {-1, 1}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}

// Comparison is a op b, op being one of = <> < <= > >=.
func Comparison(d Dialect, op string, a, b Expr) Expr {
	return binaryOf(a, b, func(x, y operand) (operand, error) {
		return logical(slices.Contains(comparisons[op], d.compare(x, y))), nil
	})
}

func (d Dialect) compare(x, y operand) int {
	if x.form != isFloat && y.form != isFloat {
		return x.exact.compare(y.exact)
	}
	c := bytes.Compare(appendFloat(nil, x.asFloat()), appendFloat(nil, y.asFloat()))
	if c == 0 && d.Engine == SQLite && x.form != y.form {
		c = x.whole().Cmp(y.whole()) // SQLite does not round the integer
	}
	return c
}

// whole is the number without what stands behind its point.
func (o operand) whole() *big.Int {
	if o.form != isFloat {
		return o.exact.at(0)
	}
	whole, _ := big.NewFloat(o.float).Int(nil)
	return whole
}

// And is true if all conditions are, and false if one is false, whatever is NULL.
func And(conditions ...Expr) Expr { return junction(false, conditions) }

// Or is true if one condition is, and false if all are false.
func Or(conditions ...Expr) Expr { return junction(true, conditions) }

// junction is decided by a condition of that truth.
func junction(decides bool, conditions []Expr) Expr {
	return func(row, args []driver.Value) (operand, error) {
		answer := logical(!decides)
		for _, e := range conditions {
			o, err := e(row, args)
			if err != nil {
				return o, err
			}
			switch is, known := o.isTrue(); {
			case !known:
				answer = operand{}
			case is == decides:
				return logical(decides), nil
			}
		}
		return answer, nil
	}
}

// Not is NULL for NULL.
func Not(condition Expr) Expr {
	return func(row, args []driver.Value) (operand, error) {
		o, err := condition(row, args)
		is, known := o.isTrue()
		if !known || err != nil {
			return operand{}, err
		}
		return logical(!is), nil
	}
}

// IsNull is true or false, never NULL.
func IsNull(x Expr) Expr {
	return func(row, args []driver.Value) (operand, error) {
		o, err := x(row, args)
		return logical(o.form == isNull), err
	}
}
