// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"math/big"
	"strconv"
	"strings"
)

// decimal is an exact number with as many digits after its point as SQL gives it: 1.50 has two. A
// zero decimal is 0.
type decimal struct {
	digits *big.Int // without the point
	scale  int      // digits after the point
	shown  int      // digits after the point of the text; MariaDB computes with more
}

func wholeDecimal(v int64) decimal { return decimal{digits: big.NewInt(v)} }

// decimalOf reads a number that is not a float.
func decimalOf(v driver.Value) (d decimal, ok bool) {
	if n, ok := v.(int64); ok {
		return wholeDecimal(n), true
	}
	whole, fraction, _ := strings.Cut(digitsOf(v), ".")
	d.digits, ok = new(big.Int).SetString(whole+fraction, 10)
	d.scale, d.shown = len(fraction), len(fraction)
	return d, ok
}

var ten = big.NewInt(10)

func power(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// at returns the digits for a scale that is not smaller than the present one.
func (d decimal) at(scale int) *big.Int {
	switch {
	case d.digits == nil:
		return new(big.Int)
	case scale == d.scale:
		return d.digits
	}
	return new(big.Int).Mul(d.digits, power(scale-d.scale))
}

func (d decimal) plus(e decimal) decimal {
	scale := max(d.scale, e.scale)
	return decimal{new(big.Int).Add(d.at(scale), e.at(scale)), scale, max(d.shown, e.shown)}
}

func (d decimal) minus(e decimal) decimal {
	e.digits = new(big.Int).Neg(e.at(e.scale))
	return d.plus(e)
}

func (d decimal) times(e decimal) decimal {
	return decimal{new(big.Int).Mul(d.at(d.scale), e.at(e.scale)), d.scale + e.scale, d.shown + e.shown}
}

func (d decimal) compare(e decimal) int {
	scale := max(d.scale, e.scale)
	return d.at(scale).Cmp(e.at(scale))
}

// MySQL and MariaDB keep the digits of a decimal in words of nine.
const wordDigits = 9

func inWords(digits int) int { return (digits + wordDigits - 1) / wordDigits * wordDigits }

// Division says how many digits after its point a quotient of decimals has on MySQL and MariaDB.
type Division struct {
	More int // more than the dividend: div_precision_increment, by default 4
	Most int // 30 on MySQL, 38 on MariaDB
	// Rounds: an expression continues with the rounded quotient, as on MySQL, and not with all
	// computed digits, as on MariaDB.
	Rounds bool
}

// over divides as MySQL and MariaDB do; e is not 0. They compute whole words and discard the rest.
// They round the text only if it has a digit too many.
func (d decimal) over(e decimal, by Division) decimal {
	have, need := inWords(d.scale), inWords(e.scale)
	missing := max(by.More-(have-d.scale)-(need-e.scale), 0)
	kept := inWords(have + need + missing)
	quotient := new(big.Int).Mul(d.at(d.scale), power(kept-d.scale+e.scale))
	quotient.Quo(quotient, e.digits)
	return decimal{quotient, kept, min(d.shown+by.More, by.Most)}
}

// mostInLiteral is how many digits after its point a decimal literal of MySQL has at most.
const mostInLiteral = 30

// Quotient returns a sum divided by a count as a literal with all digits that MySQL computes: NULL if there are no numbers, and ""
// for more digits than a literal keeps.
func Quotient(sum, count driver.Value, by Division) string {
	dividend, isSum := decimalOf(sum)
	divisor, isCount := decimalOf(count)
	if !isSum || !isCount || divisor.digits.Sign() == 0 {
		return "NULL"
	}
	exact := dividend.over(divisor, by)
	if exact.shown = exact.scale; exact.shown > mostInLiteral {
		return ""
	}
	return exact.text()
}

// quotient divides as PostgreSQL does; e is not 0. The result has at least 16 significant digits,
// and at least as many after the point as an operand shows (select_div_scale in its numeric.c).
func (d decimal) quotient(e decimal) decimal {
	a, first := d.leading()
	b, second := e.leading()
	weight := a - b
	if first <= second {
		weight--
	}
	scale := min(max(16-4*weight, d.shown, e.shown, 0), 1000)
	exact := new(big.Rat).SetFrac(new(big.Int).Mul(d.at(d.scale), power(e.scale)), new(big.Int).Mul(e.at(e.scale), power(d.scale)))
	result, _ := decimalOf(fixed(exact, scale))
	return result
}

// leading returns the first digit to the base 10,000 that is not 0, and its exponent.
func (d decimal) leading() (exponent int, digit int64) {
	if d.digits.Sign() == 0 {
		return 0, 0
	}
	text := new(big.Int).Abs(d.digits).String()
	before := len(text) - d.scale // how many digits are before the point; zeros behind it count as less than 0
	exponent = (before - 1) >> 2
	digit, _ = strconv.ParseInt((text + "000")[:before-4*exponent], 10, 64)
	return exponent, digit
}

// rounded returns the number with this many digits after its point. Halves are rounded away from
// zero.
func (d decimal) rounded(shown int) decimal {
	d.shown = shown
	d, _ = decimalOf(d.text())
	return d
}

// displayed returns the number with the digits of its text alone.
func (d decimal) displayed() decimal {
	if d.scale > d.shown {
		return d.rounded(d.shown)
	}
	return d
}

// floor returns the greatest whole number that is not above a number.
func (d decimal) floor() decimal {
	return decimal{digits: new(big.Int).Div(d.at(d.scale), power(d.scale))} // rounded towards negative infinity
}

// fits reports whether a whole number has no more than so many bits.
func (d decimal) fits(size int) bool {
	return d.digits.IsInt64() && d.digits.Int64() == d.digits.Int64()<<(64-size)>>(64-size)
}

// float returns the number with all computed digits.
func (d decimal) float() float64 {
	d.shown = d.scale
	f, _ := strconv.ParseFloat(d.text(), 64)
	return f
}

// text returns the number in MySQL's form.
func (d decimal) text() string {
	return fixed(new(big.Rat).SetFrac(d.at(d.scale), power(d.scale)), d.shown)
}

// fixed returns a number with this many digits after its point. Halves are rounded away from zero,
// and 0 has no minus sign.
func fixed(r *big.Rat, shown int) string {
	s := r.FloatString(shown)
	if strings.Trim(s, "-.0") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}
