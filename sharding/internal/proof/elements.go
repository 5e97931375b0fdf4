// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"database/sql/driver"
	"reflect"
	"strings"
)

// Elements returns the values of an array argument of PostgreSQL, an array of one dimension: a slice, NULL, which has none, or a
// text such as {1,2} or {"a b",NULL}, as lib/pq writes it.
func Elements(v any) (list []any, ok bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return textElements(v)
	case []byte:
		return textElements(string(v))
	}
	of := reflect.ValueOf(v)
	if of.Kind() != reflect.Slice || hasDimensions(of.Type().Elem()) {
		return nil, false
	}
	for i := range of.Len() {
		list = append(list, of.Index(i).Interface())
	}
	return list, true
}

// hasDimensions reports whether elements of a type are arrays themselves, other than bytes and a uuid.UUID.
func hasDimensions(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && t.Elem().Kind() != reflect.Uint8 && !t.Implements(reflect.TypeFor[driver.Valuer]())
}

// textElements reads the elements of an array's text. PostgreSQL ignores white space around them.
func textElements(text string) (list []any, ok bool) {
	rest, opens := strings.CutPrefix(strings.Trim(text, arraySpace), "{")
	if !opens {
		return nil, false
	}
	if strings.Trim(rest, arraySpace) == "}" {
		return nil, true
	}
	for {
		var v any
		if v, rest, ok = textElement(strings.TrimLeft(rest, arraySpace)); !ok {
			return nil, false
		}
		list = append(list, v)
		switch {
		case rest == "}":
			return list, true
		case !strings.HasPrefix(rest, ","):
			return nil, false
		}
		rest = rest[1:]
	}
}

const arraySpace = " \t\n\r\v\f"

// textElement reads one element at the start of a text, and returns what follows the white space after it.
func textElement(text string) (v any, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, `,{}"\`)
		if end <= 0 || text[end] != ',' && text[end] != '}' {
			return nil, "", false
		}
		word := strings.TrimRight(text[:end], arraySpace)
		if strings.EqualFold(word, "null") {
			return nil, text[end:], true
		}
		return word, text[end:], true
	}
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return out.String(), strings.TrimLeft(text[i+1:], arraySpace), true
		case '\\':
			if i++; i == len(text) {
				return nil, "", false
			}
		}
		out.WriteByte(text[i])
	}
	return nil, "", false
}
