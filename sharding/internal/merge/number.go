// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"database/sql/driver"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// number is a value in an expression or a sum: NULL, an integer, a decimal, or a float.
type number struct {
	form  form
	float float64
	exact decimal // also for an integer
	text  bool    // the decimal was a string
	truth bool    // the integer is the value of a condition
	// unsigned says that the integer is a BIGINT UNSIGNED of MySQL, and so is what is computed of it. What a prepared
	// statement returns is one only if it is larger than an int64.
	unsigned bool
	other    driver.Value // a value that is no number, in the form of its driver
}

type form uint8

const (
	isNull form = iota
	isInteger
	isDecimal
	isFloat
	isOther // a value that is no number
)

func logical(b bool) number {
	return number{form: isInteger, exact: wholeDecimal(truth(b)), truth: true}
}

// numberOf reads a value of a column of numbers.
func numberOf(v driver.Value, k Kind) (x number, err error) {
	if v == nil {
		return number{}, nil
	}
	if k == Stored {
		switch v.(type) {
		case int64, uint64, bool:
			k = Integer
		case float64:
			k = Float
		}
	}
	var ok bool
	switch k {
	case Integer:
		x.form = isInteger
		x.exact, ok = decimalOf(v)
		ok = ok && x.exact.scale == 0
		_, x.unsigned = v.(uint64)
		x.unsigned = x.unsigned || ok && !x.exact.digits.IsInt64()
	case Decimal:
		x.form = isDecimal
		x.exact, ok = decimalOf(v)
		_, x.text = v.(string)
	case Float:
		x.form = isFloat
		x.float, ok = floatOf(v)
	case Stored:
	default:
		return x, unsupported("an expression over what is no number")
	}
	if !ok {
		return x, unexpected(k, v)
	}
	return x, nil
}

// result returns the value in the form in which the driver would have returned it.
func (x number) result() driver.Value {
	switch {
	case x.form == isNull:
		return nil
	case x.form == isFloat:
		return x.float
	case x.form == isDecimal && x.text:
		return x.exact.text()
	case x.form == isDecimal:
		return []byte(x.exact.text())
	case x.exact.digits.IsInt64() && !x.unsigned:
		return x.exact.digits.Int64()
	}
	return x.exact.digits.Uint64()
}

// put replaces a value of a row, which the database has computed by the same expression, in the form of that value.
func (d Dialect) put(row []driver.Value, column int, x number, err error) error {
	if err == nil {
		row[column], err = d.like(x, row[column])
	}
	return err
}

// like returns the value in the form of another value that the database has computed by the same
// expression: with as many digits after its point.
func (d Dialect) like(x number, v driver.Value) (driver.Value, error) {
	switch {
	case x.form == isOther:
		return x.other, nil
	case d.Engine == SQLite: // each of its values has its own type
		return x.result(), nil
	}
	s, isText := TextOf(v)
	if d.Engine == PostgreSQL && x.truth {
		return x.isTrue(), nil
	}
	if d.Engine == PostgreSQL { // each of its decimals has its own number of digits after the point
		if isText && x.form == isInteger {
			x.form = isDecimal
		}
		x.text, x.unsigned = !d.Bytes, false // it has no unsigned numbers, but an argument may be one
		return x.result(), nil
	}
	_, whole := v.(int64)
	_, unsigned := v.(uint64)
	_, double := v.(float64)
	_, fraction, _ := strings.Cut(s, ".")
	if d.IsMariaDB() {
		x.float += 0 // MariaDB has no -0
	}
	switch {
	case d.Engine == MySQL && double && x.form != isNull: // because of an argument
		return x.asFloat(), nil
	case x.form == isDecimal && whole && x.exact.shown == 0:
		x.form, x.exact = isInteger, x.exact.rounded(0)
		if !x.exact.digits.IsInt64() && !x.exact.digits.IsUint64() {
			return nil, ErrOverflow
		}
	case x.form == isInteger && whole && !x.exact.digits.IsInt64(): // that of a prepared statement
		return []byte(x.exact.text()), nil
	case x.form == isInteger && (whole || unsigned):
		if x.unsigned = unsigned; !x.fits() {
			return nil, ErrOverflow
		}
	case !isText, x.form == isNull:
	case x.form == isFloat, x.exact.shown > len(fraction):
		return nil, unsupported("a number with other digits than its database returns")
	default:
		if d.Division.Rounds {
			x.exact = x.exact.displayed()
		}
		x.form, x.exact.shown = isDecimal, len(fraction)
		_, x.text = v.(string)
	}
	return x.result(), nil
}

func (x number) fits() bool {
	return x.exact.digits.IsInt64() && !x.unsigned || x.exact.digits.IsUint64() && x.unsigned
}

func (x number) asFloat() float64 {
	if x.form == isFloat {
		return x.float
	}
	return x.exact.float()
}

// isTrue reports whether a condition is true; NULL is not true.
func (x number) isTrue() bool {
	switch x.form {
	case isNull:
		return false
	case isFloat:
		return x.float != 0
	}
	return x.exact.digits.Sign() != 0
}

// arithmetic returns x op y; op is one of + - * /.
func (d Dialect) arithmetic(op byte, x, y number) (number, error) {
	o := number{form: max(x.form, y.form), text: x.text || y.text, unsigned: (x.unsigned || y.unsigned) && !(op == '-' && d.Signed)}
	switch {
	case op == '/' && !y.isTrue() && d.Engine == PostgreSQL:
		return o, ErrDivision
	case op == '/' && !y.isTrue():
		return number{}, nil
	case o.form == isFloat:
		return d.floats(op, x.asFloat(), y.asFloat())
	case op == '/' && d.Engine == MySQL:
		o.form = isDecimal
	}
	if o.exact = d.exact(op, x.exact, y.exact, o.form); d.Division.Rounds {
		o.exact = o.exact.displayed()
	}
	switch {
	case o.form == isDecimal && o.exact.shown > d.Division.Most && d.Engine == MySQL:
		return o, unsupported("a product with too many digits after its point")
	case o.form == isDecimal || o.fits():
		return o, nil
	case d.Engine == SQLite: // an integer that is too large becomes a float
		return d.floats(op, x.asFloat(), y.asFloat())
	}
	return o, ErrOverflow
}

// floats computes with floats. If the result is not a number, it is NULL; on PostgreSQL it is NaN, and
// a result that is too large is an error.
func (d Dialect) floats(op byte, x, y float64) (number, error) {
	f := x / y
	switch op {
	case '+':
		f = x + y
	case '-':
		f = x - y
	case '*':
		f = x * y
	}
	switch {
	case d.Engine != PostgreSQL && math.IsNaN(f):
		return number{}, nil
	case d.Engine == PostgreSQL && math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0):
		return number{}, ErrOverflow
	}
	return number{form: isFloat, float: f}, nil
}

// exact computes with numbers that are not floats. A quotient of integers is truncated to one, except
// on MySQL, where it is a decimal.
func (d Dialect) exact(op byte, x, y decimal, result form) decimal {
	switch {
	case op == '+':
		return x.plus(y)
	case op == '-':
		return x.minus(y)
	case op == '*':
		return x.times(y)
	case d.Engine == MySQL:
		return x.over(y, d.Division)
	case result == isDecimal:
		return x.quotient(y)
	}
	return decimal{digits: new(big.Int).Quo(x.digits, y.digits)}
}

func (d Dialect) round(x number, digits int) number {
	switch {
	case d.Engine == PostgreSQL && x.form != isFloat: // it has these digits, also of a whole number
		x.form, x.exact = isDecimal, x.exact.rounded(digits)
	case d.Engine == SQLite:
		return number{form: isFloat, float: roundHalfUp(x.asFloat(), digits)}
	case x.form == isFloat:
		if unit := math.Pow10(digits); !math.IsInf(x.float*unit, 0) {
			x.float = math.RoundToEven(x.float*unit) / unit
		}
	case x.exact.scale > digits:
		x.exact = x.exact.rounded(digits)
	default:
		x.exact.shown = x.exact.scale
	}
	return x
}

// toInteger returns a number as a whole number of so many bits. Halves of floats are rounded to even numbers.
func (d Dialect) toInteger(x number, size int) (number, error) {
	of := number{form: isInteger, exact: x.exact.rounded(0)}
	if x.form == isFloat {
		if of.exact = wholeDecimal(int64(math.RoundToEven(x.float))); !(math.Abs(x.float) < 1<<63) { // nor is NaN
			return of, ErrOverflow
		}
	}
	if !of.exact.fits(size) {
		return of, ErrOverflow
	}
	return of, nil
}

// whole returns FLOOR(x), or CEIL(x) if up is set. MySQL and PostgreSQL return decimals for decimals.
func (x number) whole(up bool) number {
	switch {
	case x.form == isFloat && up:
		x.float = math.Ceil(x.float)
	case x.form == isFloat:
		x.float = math.Floor(x.float)
	case up:
		x.exact = wholeDecimal(0).minus(wholeDecimal(0).minus(x.exact).floor())
	default:
		x.exact = x.exact.floor()
	}
	return x
}

func (d Dialect) compare(x, y number) int {
	if x.form != isFloat && y.form != isFloat {
		return x.exact.compare(y.exact)
	}
	c := bytes.Compare(appendFloat(nil, x.asFloat()), appendFloat(nil, y.asFloat()))
	if c == 0 && d.Engine == SQLite && x.form != y.form {
		return x.rat().Cmp(y.rat()) // SQLite does not round the integer
	}
	return c
}

func (x number) rat() *big.Rat {
	if x.form == isFloat {
		return new(big.Rat).SetFloat64(x.float)
	}
	return new(big.Rat).SetInt(x.exact.digits)
}

// roundHalfUp rounds all digits of a float; halves are rounded away from zero. With digits behind the point, a negative number
// becomes -0.
func roundHalfUp(f float64, digits int) float64 {
	if math.Abs(f) >= 1<<52 || math.IsNaN(f) {
		return f
	}
	rounded, _ := strconv.ParseFloat(fixed(new(big.Rat).SetFloat64(f), digits), 64)
	if f < 0 && digits > 0 {
		return math.Copysign(rounded, f)
	}
	return rounded
}
