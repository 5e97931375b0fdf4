package input

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Number is what the value of a flag can be that has a least value.
type Number interface{ int | int64 | time.Duration }

// Least is the value of a flag (a pflag.Value) that is refused when it is below the least
// one.
type Least[N Number] struct {
	value *N
	least N
}

// AtLeast returns the flag's value of a variable, which holds the default. Durations have
// a unit; one that must be positive has a least value of a nanosecond.
func AtLeast[N Number](least N, value *N) *Least[N] { return &Least[N]{value, least} }

// Set implements pflag.Value.
func (l *Least[N]) Set(text string) error {
	n, err := parse[N](text)
	if err != nil {
		return err
	}
	if n < l.least {
		return tooSmall(l.least)
	}
	*l.value = n
	return nil
}

func parse[N Number](text string) (n N, err error) {
	if _, is := any(n).(time.Duration); is {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration; it is a number with a unit: 500ms, 10s, 1h", text)
		}
		return N(d), nil
	}
	bits := 64
	if _, is := any(n).(int); is {
		bits = strconv.IntSize
	}
	whole, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number up to %d", text, int64(1)<<(bits-1)-1)
	}
	return N(whole), nil
}

func tooSmall[N Number](least N) error {
	if least == 1 {
		return errors.New("it must be positive")
	}
	return fmt.Errorf("it must be %v or more", least)
}

// String implements pflag.Value.
func (l *Least[N]) String() string {
	if l == nil || l.value == nil || *l.value == 0 {
		return "0" // which usages leave out
	}
	return fmt.Sprint(*l.value)
}

// Type implements pflag.Value.
func (l *Least[N]) Type() string {
	var n N
	switch any(n).(type) {
	case time.Duration:
		return "duration"
	case int64:
		return "int"
	}
	return fmt.Sprintf("%T", n)
}
