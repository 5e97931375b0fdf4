package merge

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
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

// Expr is an expression over the columns of a row: of HAVING, or of a select list
// over aggregates. Truth is 1, 0 or NULL. An Expr is immutable.
type Expr struct {
	eval func(row []driver.Value) (operand, error)
}

// operand is a value in an expression: NULL, a float, an integer, a decimal, or a
// value that is only compared.
type operand struct {
	form  form
	float float64
	exact decimal
	text  bool // the decimal was a string
	value driver.Value
	typ   Type
}

type form uint8

const (
	isNull form = iota
	isInteger
	isDecimal
	isFloat
	isOther
)

func logical(b bool) operand { return operand{form: isInteger, exact: wholeDecimal(truth(b))} }

// Column is a column of the row.
func Column(i int, t Type) Expr {
	return Expr{func(row []driver.Value) (operand, error) { return operandOf(row[i], t) }}
}

// Constant is a value that is written in the statement, or an argument.
func Constant(v driver.Value, t Type) Expr {
	o, err := operandOf(keep(v), t)
	return Expr{func([]driver.Value) (operand, error) { return o, err }}
}

func operandOf(v driver.Value, t Type) (operand, error) {
	if v == nil {
		return operand{}, nil
	}
	k := t.Kind
	if k == Stored {
		switch v.(type) {
		case int64, bool:
			k = Integer
		case float64:
			k = Float
		}
	}
	o := operand{value: v, typ: t}
	ok := true
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
		o.form = isOther
	}
	if !ok {
		return o, unexpected(k, v)
	}
	return o, nil
}

// result is the value as the driver would have given it.
func (o operand) result() driver.Value {
	switch o.form {
	case isNull:
		return nil
	case isFloat:
		return o.float
	case isInteger:
		if o.exact.digits.IsUint64() && !o.exact.digits.IsInt64() {
			return o.exact.digits.Uint64()
		}
		return o.exact.digits.Int64()
	case isDecimal:
		if o.text {
			return string(o.exact.text())
		}
		return o.exact.text()
	}
	return o.value
}

func (o operand) asFloat() float64 {
	if o.form == isFloat {
		return o.float
	}
	return o.exact.float()
}

// isTrue tells a condition's truth; NULL is known to be neither.
func (o operand) isTrue() (truth, known bool, err error) {
	switch o.form {
	case isNull:
		return false, false, nil
	case isOther:
		return false, true, unoffered("a condition that is no number")
	case isFloat:
		return o.float != 0, true, nil
	}
	return o.exact.sign() != 0, true, nil
}

// Filtered returns the rows for which the condition is true: HAVING.
func Filtered(rows Rows, condition Expr) Rows {
	s := over(rows)
	s.step = func(dest []driver.Value) error {
		for {
			if err := rows.Next(dest); err != nil {
				return err
			}
			o, err := condition.eval(dest)
			if err != nil {
				return err
			}
			if ok, _, err := o.isTrue(); ok || err != nil {
				return err
			}
		}
	}
	return s
}

// Computed returns a row of expressions for each row, the columns having these names.
func Computed(rows Rows, names []string, columns []Expr) Rows {
	s := over(rows)
	s.columns = names
	var row []driver.Value
	s.step = func(dest []driver.Value) error {
		if row == nil {
			row = make([]driver.Value, len(rows.Columns()))
		}
		if err := rows.Next(row); err != nil {
			return err
		}
		for i, e := range columns {
			o, err := e.eval(row)
			if err != nil {
				return fmt.Errorf("%w (%s)", err, names[i])
			}
			dest[i] = o.result()
		}
		return nil
	}
	return s
}

// binaryOf evaluates both operands; NULL if one is.
func binaryOf(a, b Expr, f func(x, y operand) (operand, error)) Expr {
	return Expr{func(row []driver.Value) (operand, error) {
		x, err := a.eval(row)
		if err != nil {
			return x, err
		}
		y, err := b.eval(row)
		if err != nil || x.form == isNull || y.form == isNull {
			return operand{}, err
		}
		return f(x, y)
	}}
}

// Arithmetic is a op b, op being one of + - * /. It is NULL where an operand is.
func Arithmetic(d Dialect, op byte, a, b Expr) Expr {
	return binaryOf(a, b, func(x, y operand) (operand, error) {
		switch {
		case x.form == isOther || y.form == isOther:
			return x, unoffered("arithmetic with what is no number")
		case op == '/' && y.asFloat() == 0:
			if d.Engine == PostgreSQL {
				return x, ErrDivision
			}
			return operand{}, nil
		case x.form == isFloat || y.form == isFloat:
			return floatArithmetic(op, x.asFloat(), y.asFloat())
		}
		return d.exactArithmetic(op, x, y)
	})
}

func floatArithmetic(op byte, x, y float64) (operand, error) {
	var f float64
	switch op {
	case '+':
		f = x + y
	case '-':
		f = x - y
	case '*':
		f = x * y
	case '/':
		f = x / y
	default:
		return operand{}, unoffered("operator " + string(op))
	}
	if math.IsNaN(f) {
		return operand{}, nil
	}
	return operand{form: isFloat, float: f}, nil
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
	case '/':
		return d.quotient(o, x, y)
	default:
		return o, unoffered("operator " + string(op))
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
		return floatArithmetic(op, x.asFloat(), y.asFloat())
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
		o.exact.digits = x.exact.at(0)
		o.exact = decimal{digits: o.exact.digits.Quo(o.exact.digits, y.exact.at(0))}
		return d.inRange('/', o, x, y)
	}
	return o, unoffered("a quotient of decimals on PostgreSQL")
}

var comparisons = map[string]func(c int) bool{
	"=":  func(c int) bool { return c == 0 },
	"<>": func(c int) bool { return c != 0 },
	"<":  func(c int) bool { return c < 0 },
	"<=": func(c int) bool { return c <= 0 },
	">":  func(c int) bool { return c > 0 },
	">=": func(c int) bool { return c >= 0 },
}

// Comparison is a op b, op being one of = <> < <= > >=. Numbers compare with numbers;
// other values with such of the same Type.
func Comparison(d Dialect, op string, a, b Expr) Expr {
	holds := comparisons[op]
	return binaryOf(a, b, func(x, y operand) (operand, error) {
		if holds == nil {
			return x, unoffered("operator " + op)
		}
		c, err := d.compare(x, y)
		return logical(holds(c)), err
	})
}

func (d Dialect) compare(x, y operand) (int, error) {
	switch {
	case x.form == isOther && y.form == isOther:
		return compareOthers(x, y)
	case x.form == isOther || y.form == isOther:
		return 0, unoffered("a comparison of a number with what is none")
	case x.form != isFloat && y.form != isFloat:
		return x.exact.compare(y.exact), nil
	}
	c := bytes.Compare(appendFloat(nil, x.asFloat()), appendFloat(nil, y.asFloat()))
	if c == 0 && d.Engine == SQLite && x.form != y.form {
		c = x.whole().Cmp(y.whole()) // SQLite does not round the integer
	}
	return c, nil
}

// whole is the number without what stands behind its point.
func (o operand) whole() *big.Int {
	if o.form != isFloat {
		return o.exact.at(0)
	}
	whole, _ := big.NewFloat(o.float).Int(nil)
	return whole
}

func compareOthers(x, y operand) (int, error) {
	if x.typ.Kind != y.typ.Kind || x.typ.Collation != y.typ.Collation || !bytes.Equal(x.typ.Pad, y.typ.Pad) {
		return 0, unoffered("a comparison of a " + kinds[x.typ.Kind] + " with a " + kinds[y.typ.Kind])
	}
	row, keys := []driver.Value{x.value, y.value}, []Key{{Type: x.typ}}
	p, err := appendKeys(nil, keys, row)
	if err != nil {
		return 0, err
	}
	q, err := appendKeys(nil, keys, row[1:])
	return bytes.Compare(p, q), err
}

// And is true if all conditions are, and false if one is false, whatever is NULL.
func And(conditions ...Expr) Expr { return junction(false, conditions) }

// Or is true if one condition is, and false if all are false.
func Or(conditions ...Expr) Expr { return junction(true, conditions) }

// junction is decided by a condition of that truth.
func junction(decides bool, conditions []Expr) Expr {
	return Expr{func(row []driver.Value) (operand, error) {
		answer := logical(!decides)
		for _, e := range conditions {
			o, err := e.eval(row)
			if err != nil {
				return o, err
			}
			is, known, err := o.isTrue()
			switch {
			case err != nil:
				return o, err
			case !known:
				answer = operand{}
			case is == decides:
				return logical(decides), nil
			}
		}
		return answer, nil
	}}
}

// Not is NULL for NULL.
func Not(condition Expr) Expr {
	return Expr{func(row []driver.Value) (operand, error) {
		o, err := condition.eval(row)
		if err != nil {
			return o, err
		}
		is, known, err := o.isTrue()
		if !known || err != nil {
			return operand{}, err
		}
		return logical(!is), nil
	}}
}

// In is true if x equals one of the list, and NULL if that depends on a NULL.
func In(d Dialect, x Expr, list ...Expr) Expr {
	equal := make([]Expr, len(list))
	for i, e := range list {
		equal[i] = Comparison(d, "=", x, e)
	}
	return Or(equal...)
}

// Between is low <= x AND x <= high.
func Between(d Dialect, x, low, high Expr) Expr {
	return And(Comparison(d, ">=", x, low), Comparison(d, "<=", x, high))
}

// IsNull is true or false, never NULL.
func IsNull(x Expr) Expr {
	return Expr{func(row []driver.Value) (operand, error) {
		o, err := x.eval(row)
		return logical(o.form == isNull), err
	}}
}
