// SPDX-License-Identifier: Apache-2.0

package input

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Number is the type of a flag's value that has limits.
type Number interface{ int | int64 | time.Duration }

// Limited is the value of a flag (a pflag.Value) that refuses numbers below the least or
// above the most: a typing error, such as a missing unit or a digit too many, must not
// become a wait of years.
type Limited[N Number] struct {
	value       *N
	least, most N
}

// Between returns the flag's value for a variable, which holds the default. A default of 0
// may lie outside the limits. Durations have a unit.
func Between[N Number](least, most N, value *N) *Limited[N] { return &Limited[N]{value, least, most} }

// Set implements pflag.Value.
func (l *Limited[N]) Set(text string) error {
	n, err := parse[N](text)
	if err != nil {
		return err
	}
	switch {
	case n < l.least && int64(l.most) == math.MaxInt64:
		return fmt.Errorf("it must be %s or more", shown(l.least))
	case n < l.least || n > l.most:
		return fmt.Errorf("it must be between %s and %s", shown(l.least), shown(l.most))
	}
	*l.value = n
	return nil
}

func parse[N Number](text string) (n N, err error) {
	if _, is := any(n).(time.Duration); is {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration; write a number with a unit: 500ms, 10s, 1h", text)
		}
		return N(d), nil
	}
	bits := 64
	if _, is := any(n).(int); is {
		bits = strconv.IntSize
	}
	whole, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number up to %d", text, int64(1)<<(bits-1)-1)
	}
	return N(whole), nil
}

// shown removes zero units at the end of a duration: 1h, not 1h0m0s.
func shown[N Number](n N) string {
	text := fmt.Sprint(n)
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// String implements pflag.Value.
func (l *Limited[N]) String() string {
	if l == nil || l.value == nil || *l.value == 0 {
		return "0" // usages leave a default of 0 out
	}
	return fmt.Sprint(*l.value)
}

// Type implements pflag.Value.
func (l *Limited[N]) Type() string {
	var n N
	switch any(n).(type) {
	case time.Duration:
		return "duration"
	case int64:
		return "int"
	}
	return fmt.Sprintf("%T", n)
}
