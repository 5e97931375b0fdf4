package merge

import (
	"database/sql/driver"
	"math"
)

// sum adds numbers up. Whole numbers that fit are added as such; all others that are
// no floats exactly; floats with what rounding lost, as SQLite does.
type sum struct {
	some    bool // a value that is not NULL was added
	inexact bool // a float was
	text    bool // the first value was a string and no slice of bytes
	small   int64
	exact   decimal
	float   float64
	lost    float64
}

// add adds a value; NULL adds nothing.
func (s *sum) add(v driver.Value, k Kind) error {
	if v == nil {
		return nil
	}
	if !s.some {
		_, s.text = v.(string)
		s.some = true
	}
	if n, ok := v.(int64); ok && k != Float {
		s.addWhole(n)
		return nil
	}
	_, isFloat := v.(float64)
	switch {
	case k == Float || k == Stored && isFloat:
		f, ok := floatOf(v)
		if !ok {
			return unexpected(k, v)
		}
		s.inexact = true
		s.addFloat(f)
		return nil
	case k == Integer || k == Decimal:
		if d, ok := decimalOf(v); ok && (k == Decimal || d.scale == 0) {
			s.exact = s.exact.plus(d)
			return nil
		}
	}
	return unexpected(k, v)
}

func (s *sum) addWhole(n int64) {
	if total := s.small + n; (total > s.small) == (n > 0) {
		s.small = total
		return
	}
	s.exact = s.exact.plus(wholeDecimal(n))
}

func (s *sum) addFloat(f float64) {
	total := s.float + f
	if math.Abs(s.float) >= math.Abs(f) {
		s.lost += s.float - total + f
	} else {
		s.lost += f - total + s.float
	}
	s.float = total
}

func (s *sum) total() decimal { return s.exact.plus(wholeDecimal(s.small)) }

// floats returns the sum as a float.
func (s *sum) floats() float64 {
	if s.small != 0 || s.exact.digits != nil {
		s.addFloat(s.total().float())
		s.small, s.exact = 0, decimal{}
	}
	if math.IsInf(s.float, 0) || math.IsNaN(s.lost) {
		return s.float
	}
	return s.float + s.lost
}

// result returns the sum as the database would: NULL of no values, an integer, a
// decimal, or a float.
func (s *sum) result(k Kind) (driver.Value, error) {
	switch {
	case !s.some:
		return nil, nil
	case k == Float:
		return s.floats(), nil
	case k == Decimal:
		return s.written(s.total()), nil
	case s.inexact:
		return number(s.floats()), nil
	}
	total := s.total().digits
	if !total.IsInt64() {
		return nil, ErrOverflow
	}
	return total.Int64(), nil
}

// written returns a decimal as the driver gives them.
func (s *sum) written(d decimal) driver.Value {
	if s.text {
		return string(d.text())
	}
	return d.text()
}

// number returns a float of SQLite, which has NULL for what is no number.
func number(f float64) driver.Value {
	if math.IsNaN(f) {
		return nil
	}
	return f
}
