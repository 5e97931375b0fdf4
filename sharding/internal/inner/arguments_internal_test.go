// SPDX-License-Identifier: Apache-2.0

package inner

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"time"
)

// checking is a driver that checks arguments itself.
type checking struct {
	driver.Conn
	look func(*driver.NamedValue) error
}

func (c checking) CheckNamedValue(v *driver.NamedValue) error { return c.look(v) }

func TestArgumentsAreCopiedOnlyIfTheDriverChangesThem(t *testing.T) {
	var plain driver.Conn
	same := []any{nil, int64(1), 2.5, true, "x", []byte("y"), []byte(nil), time.Unix(5, 0)}
	for _, c := range []struct {
		name   string
		on     driver.Conn
		given  []any
		want   []any
		copied bool
	}{
		{"values of drivers", plain, same, same, false},
		{"int", plain, []any{"x", 5, "y"}, []any{"x", int64(5), "y"}, true},
		{"many", plain, []any{1, 2, 3, 4, 5, 6}, []any{int64(1), int64(2), int64(3), int64(4), int64(5), int64(6)}, true},
		{"a driver that takes all", checking{look: func(*driver.NamedValue) error { return nil }}, []any{"x", int64(5)}, []any{"x", int64(5)}, false},
		{"a driver's own type", checking{look: func(*driver.NamedValue) error { return nil }}, []any{"x", struct{}{}}, []any{"x", struct{}{}}, true},
		{"a driver that asks for the default", checking{look: func(*driver.NamedValue) error { return driver.ErrSkip }}, []any{7, "x"}, []any{int64(7), "x"}, true},
		{"an argument for the driver alone", checking{look: func(v *driver.NamedValue) error {
			if v.Value == "option" {
				return driver.ErrRemoveArgument
			}
			return nil
		}}, []any{"a", "option", "b", "option", "c"}, []any{"a", "b", "c"}, true},
		{"none", plain, nil, nil, false},
	} {
		given := make([]driver.NamedValue, len(c.given))
		for i, v := range c.given {
			given[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
		}
		before := fmt.Sprint(given)
		var memory arguments
		got, err := memory.checked(c.on, nil, given)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if fmt.Sprint(given) != before {
			t.Errorf("%s: what was given is %v now", c.name, given)
		}
		if copied := len(got) > 0 && &got[0] != &given[0]; copied != c.copied {
			t.Errorf("%s: copied %v, want %v", c.name, copied, c.copied)
		}
		values := make([]any, len(got))
		for i, v := range got {
			if values[i] = v.Value; v.Ordinal != i+1 {
				t.Errorf("%s: the argument %d has the number %d", c.name, i+1, v.Ordinal)
			}
		}
		if fmt.Sprintf("%#v", values) != fmt.Sprintf("%#v", append([]any{}, c.want...)) {
			t.Errorf("%s: %#v, want %#v", c.name, values, c.want)
		}
	}
	if got, err := (&arguments{own: true}).checked(plain, nil, []driver.NamedValue{{Ordinal: 1, Value: 5}, {Ordinal: 2, Value: uint(6)}, {Ordinal: 3, Value: "x"}}); err != nil || fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", []driver.NamedValue{{Ordinal: 1, Value: int64(5)}, {Ordinal: 2, Value: int64(6)}, {Ordinal: 3, Value: "x"}}) {
		t.Errorf("integers in a list of one execution: %v, %v", got, err)
	}
	converts := checking{look: func(*driver.NamedValue) error { return driver.ErrSkip }}
	list := []driver.NamedValue{{Ordinal: 1, Value: 5}}
	if got, err := (&arguments{own: true}).checked(converts, nil, list); err != nil || &got[0] != &list[0] || got[0].Value != any(int64(5)) {
		t.Errorf("an integer in a list of one execution, for a driver with a checker: %v, %v", got, err)
	}
	refused := errors.New("refused")
	for _, result := range []error{nil, refused, driver.ErrRemoveArgument} {
		changes := checking{look: func(v *driver.NamedValue) error {
			v.Value = "changed"
			return result
		}}
		list := []driver.NamedValue{{Ordinal: 1, Value: "x"}}
		if _, _ = (&arguments{own: true}).checked(changes, nil, list); list[0].Value != any("x") {
			t.Errorf("a driver that changes an argument and returns %v has changed the list of a statement, which may be sent again: %v", result, list)
		}
	}
	if _, err := new(arguments).checked(checking{look: func(*driver.NamedValue) error { return refused }}, nil, []driver.NamedValue{{Ordinal: 1}}); !errors.Is(err, refused) {
		t.Error(err)
	}
}
