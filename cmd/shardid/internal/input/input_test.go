// SPDX-License-Identifier: Apache-2.0

package input_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
)

func TestAMistakeInJSONIsFound(t *testing.T) {
	type file struct {
		Tables []struct {
			Name  string `json:"name"`
			Slots int    `json:"slots"`
		} `json:"tables"`
	}
	for text, want := range map[string]string{
		"": "empty", " \n": "empty",
		"{\n  \"tables\": [{\"name\": \"orders\",}]\n}":              "line 2, column 32: this is not JSON: invalid character '}'",
		"{\n\n \"tabels\": []}":                                      `line 3, column 2: there is no field "tabels"`,
		"{\"tables\": [\n{\"name\": \"orders\", \"slots\": \"8\"}]}": "line 2, column 31: tables.slots is a string and has to be a number",
		"[]":                            "line 1, column 1: the value is an array and has to be an object",
		"{\"tables\": {}}":              "line 1, column 12: tables is an object and has to be an array",
		"{\"tables\": [{\"name\": 7}]}": "tables.name is a number and has to be a string",
		"{\"tables\": []} {}":           "line 1, column 16: there is more",
		"{\"tables\": [":                "line 1, column 13: the JSON value does not end",
		"\uFEFFnonsense":                "line 1, column 2: this is not JSON: invalid character",
		"nonsense":                      "line 1, column 2: this is not JSON: invalid character",
	} {
		var f file
		if err := input.JSON([]byte(text), &f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
	for _, mark := range []string{"", "\uFEFF"} {
		var f file
		if err := input.JSON([]byte(mark+"{\"tables\": [{\"name\": \"orders\"}]}\n"), &f); err != nil || f.Tables[0].Name != "orders" {
			t.Errorf("after %q: %v %v", mark, f, err)
		}
	}
}

func TestAValueOutsideItsLimitsIsRefused(t *testing.T) {
	rows, pause := 4000, 200*time.Millisecond
	count, wait := input.Between(1, 1_000_000, &rows), input.Between(time.Millisecond, time.Hour, &pause)
	for text, want := range map[string]string{"0": "between 1 and 1000000", "-5": "between", "1000001": "between", "1e3": "whole number", "99999999999999999999": "whole number"} {
		if err := count.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s rows: %v", text, err)
		}
	}
	for text, want := range map[string]string{"0s": "between 1ms and 1h", "-5s": "between", "61m": "between", "1us": "between", "5": "unit", "soon": "unit"} {
		if err := wait.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if rows != 4000 || pause != 200*time.Millisecond {
		t.Error("a value that is refused is taken")
	}
	if err := count.Set("10"); err != nil || rows != 10 || count.String() != "10" || count.Type() != "int" {
		t.Error(rows, err)
	}
	if err := wait.Set("3s"); err != nil || pause != 3*time.Second || wait.String() != "3s" || wait.Type() != "duration" {
		t.Error(pause, err)
	}
	if err := input.Between(-1, math.MaxInt64, &rows).Set("-2"); err == nil || !strings.Contains(err.Error(), "-1 or more") {
		t.Error(err)
	}
}
