// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Text returns the text of a file without the byte order mark that some editors put before it.
func Text(file []byte) []byte { return bytes.TrimPrefix(file, []byte("\uFEFF")) }

// JSON parses text, which must be one JSON value; a byte order mark may precede it. It refuses
// fields that into does not have, and text after the value. The error names the line and column.
func JSON(text []byte, into any) error {
	text = Text(text)
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("the file is empty")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
			return at(text, int64(bytes.LastIndex(text, rest)), "there is more text after the JSON value")
		}
		return nil
	case errors.As(err, &syntax):
		return at(text, syntax.Offset-1, "this is not JSON: "+syntax.Error())
	case errors.Is(err, io.ErrUnexpectedEOF):
		return at(text, int64(len(text)), "the JSON value does not end")
	case errors.As(err, &kind):
		return at(text, kind.Offset-1, fmt.Sprintf("%s is %s and has to be %s", field(kind.Field), valueName(kind.Value), typeName(kind.Type)))
	}
	if name, is := strings.CutPrefix(err.Error(), "json: unknown field "); is {
		return at(text, int64(max(bytes.Index(text, []byte(name)), 0)), "there is no field "+name)
	}
	return err
}

func field(path string) string {
	if path == "" {
		return "the value"
	}
	return path
}

// valueName is the name of a JSON value: encoding/json says "number 7" for some.
func valueName(value string) string {
	name, _, _ := strings.Cut(value, " ")
	if name == "array" || name == "object" {
		return "an " + name
	}
	return "a " + name
}

// typeName is the JSON name of a Go type.
func typeName(t reflect.Type) string {
	switch t.Kind() { //nolint:exhaustive // the rest are numbers
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	}
	return "a number"
}

// at makes an error with the line and column of an offset, both counted from 1.
func at(text []byte, offset int64, problem string) error {
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("line %d, column %d: %s", line, column, problem)
}
