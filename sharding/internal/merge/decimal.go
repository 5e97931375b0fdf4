package merge

import (
	"database/sql/driver"
	"math/big"
	"strconv"
	"strings"
)

// decimal is an exact number with the digits after its point that SQL gives it: 1.50
// has two. A zero decimal is 0.
type decimal struct {
	digits *big.Int // without the point
	scale  int
	fewer  int // digits that are computed with, but not shown
}

func wholeDecimal(v int64) decimal { return decimal{digits: big.NewInt(v)} }

// decimalOf reads a number that is no float.
func decimalOf(v driver.Value) (decimal, bool) {
	switch v := v.(type) {
	case int64:
		return wholeDecimal(v), true
	case uint64:
		return decimal{digits: new(big.Int).SetUint64(v)}, true
	case bool:
		return wholeDecimal(truth(v)), true
	}
	s, ok := textOf(v)
	if !ok || strings.Trim(s, "-."+digits) != "" {
		return decimal{}, false
	}
	var d decimal
	if whole, fraction, found := strings.Cut(s, "."); found {
		s, d.scale = whole+fraction, len(fraction)
	}
	d.digits, ok = new(big.Int).SetString(s, 10)
	return d, ok
}

var ten = big.NewInt(10)

func power(n int) *big.Int { return new(big.Int).Exp(ten, big.NewInt(int64(n)), nil) }

// at returns the digits for a scale that is not smaller.
func (d decimal) at(scale int) *big.Int {
	switch {
	case d.digits == nil:
		return new(big.Int)
	case scale == d.scale:
		return d.digits
	}
	return new(big.Int).Mul(d.digits, power(scale-d.scale))
}

// shown is how many digits stand after the point of the text.
func (d decimal) shown() int { return d.scale - d.fewer }

func (d decimal) plus(e decimal) decimal {
	scale := max(d.scale, e.scale)
	return decimal{new(big.Int).Add(d.at(scale), e.at(scale)), scale, scale - max(d.shown(), e.shown())}
}

func (d decimal) minus(e decimal) decimal {
	e.digits = new(big.Int).Neg(e.at(e.scale))
	return d.plus(e)
}

func (d decimal) times(e decimal) decimal {
	return decimal{new(big.Int).Mul(d.at(d.scale), e.at(e.scale)), d.scale + e.scale, d.fewer + e.fewer}
}

func (d decimal) compare(e decimal) int {
	scale := max(d.scale, e.scale)
	return d.at(scale).Cmp(e.at(scale))
}

func (d decimal) sign() int { return d.at(d.scale).Sign() }

// MySQL and MariaDB keep the digits of a decimal in words of nine.
const wordDigits = 9

func inWords(digits int) int { return (digits + wordDigits - 1) / wordDigits * wordDigits }

// over divides as MySQL and MariaDB do, e not being 0. They compute whole words, and
// cut off the rest; the text is rounded only where they have a digit too many.
func (d decimal) over(e decimal, by Division) decimal {
	have, need := inWords(d.scale), inWords(e.scale)
	missing := max(by.More-(have-d.scale)-(need-e.scale), 0)
	kept := inWords(have + need + missing)
	quotient := new(big.Int).Mul(d.at(d.scale), power(kept-d.scale+e.scale))
	quotient.Quo(quotient, e.at(e.scale))
	result := decimal{quotient, kept, kept - min(d.shown()+by.More, by.Most)}
	if by.Rounds {
		return decimal{digits: result.rounded(), scale: result.shown()}
	}
	return result
}

// rounded returns the digits that are shown, halves rounded away from zero.
func (d decimal) rounded() *big.Int {
	digits := d.at(d.scale)
	if d.fewer <= 0 {
		return digits
	}
	unit := power(d.fewer)
	half := new(big.Int).Quo(unit, big.NewInt(2))
	if digits.Sign() < 0 {
		half.Neg(half)
	}
	half.Add(half, digits)
	return half.Quo(half, unit)
}

func (d decimal) float() float64 {
	f, _ := strconv.ParseFloat(string(d.text()), 64)
	return f
}

// text returns the number as MySQL writes it.
func (d decimal) text() []byte {
	digits, scale := d.rounded(), d.shown()
	s := new(big.Int).Abs(digits).Text(10)
	if len(s) <= scale {
		s = strings.Repeat("0", scale+1-len(s)) + s
	}
	var b []byte
	if digits.Sign() < 0 {
		b = append(b, '-')
	}
	b = append(b, s[:len(s)-scale]...)
	if scale > 0 {
		b = append(append(b, '.'), s[len(s)-scale:]...)
	}
	return b
}
