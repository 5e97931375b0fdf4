// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"math"
)

// sum adds numbers. It adds integers as long as the sum fits, other numbers that are not floats
// exactly, and floats with a compensation of rounding, as SQLite does.
type sum struct {
	form  form // the form of the sum: isNull before the first value, isFloat after a float
	text  bool // the first value was a string and not a slice of bytes
	small int64
	exact decimal
	float float64
	lost  float64
}

// add adds a value; it ignores NULL.
func (s *sum) add(v driver.Value, k Kind) error {
	if n, ok := v.(int64); ok && k != Float {
		if total := s.small + n; (total > s.small) == (n > 0) {
			s.form, s.small = max(s.form, isInteger), total
			return nil
		}
	}
	x, err := numberOf(v, k)
	if err != nil || x.form == isNull {
		return err
	}
	first := s.form == isNull
	s.text = s.text || first && x.text
	s.form = max(s.form, x.form)
	switch {
	case x.form != isFloat:
		s.exact = s.exact.plus(x.exact)
	case first && k != Stored: // SQLite adds to 0
		s.float = x.float // which may be -0
	default:
		s.addFloat(x.float)
	}
	return nil
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

// total returns the sum: NULL for no values, an integer, a decimal, or a float. SQLite returns NULL if the sum is not a
// number.
func (s *sum) total(k Kind) (number, error) {
	x := number{form: s.form, text: s.text, exact: s.exact.plus(wholeDecimal(s.small))}
	switch {
	case x.form == isFloat:
		x.float = s.floats(x.exact.float())
		if k == Stored && math.IsNaN(x.float) {
			return number{}, nil
		}
	case x.form != isNull && k == Decimal:
		x.form = isDecimal
	case x.form == isInteger && !x.exact.digits.IsInt64():
		return x, ErrOverflow
	}
	return x, nil
}

// floats returns the sum of all values as a float; whole is the sum of those that are not floats. It does not change s, to
// which a window adds more values.
func (s sum) floats(whole float64) float64 {
	if whole != 0 {
		s.addFloat(whole)
	}
	if math.IsInf(s.float, 0) || math.IsNaN(s.lost) || s.lost == 0 {
		return s.float
	}
	return s.float + s.lost
}
