// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"reflect"
	"testing"
	"time"
)

func TestAValueHasTheFormInWhichItsColumnReturnsIt(t *testing.T) {
	const id = "f47ac10b-58cc-4372-a567-0e02b2c3d479"
	east := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("east", 9*3600))
	for _, c := range []struct {
		column      Column
		value, want any // nil is unknown
	}{
		{Column{Type: "uuid", Holds: HoldsForms}, id, id},
		{Column{Type: "uuid", Holds: HoldsForms}, "F47AC10B-58CC-4372-A567-0E02B2C3D479", id},
		{Column{Type: "uuid", Holds: HoldsForms}, "{f47ac10b58cc4372a5670e02b2c3d479}", id},
		{Column{Type: "uuid", Holds: HoldsForms}, "f47ac10b-58cc-4372-a567-0e02b2c3d47", nil},
		{Column{Type: "uuid", Holds: HoldsForms}, "", nil},
		{Column{Type: "uuid", Holds: HoldsForms}, int64(5), nil},
		{Column{Type: "uuid", Holds: HoldsForms}, []byte(id), nil},
		{Column{Type: "uuid", Holds: HoldsForms, Loose: true}, []byte(id), id},
		{Column{Type: "inet6", Holds: HoldsForms, Loose: true}, "::1", "::1"},
		{Column{Type: "varchar(9)", Holds: HoldsTexts}, []byte("a "), "a "},
		{Column{Type: "varchar(9)", Holds: HoldsTexts}, "a ", "a "},
		{Column{Type: "text", Holds: HoldsTexts, Hexed: true}, []byte("a"), `\x61`},
		{Column{Type: "text", Holds: HoldsTexts, Hexed: true}, "a", "a"},
		{Column{Type: "varbinary(9)", Holds: HoldsBytes, Loose: true}, `a\ `, []byte(`a\ `)},
		{Column{Type: "bytea", Holds: HoldsBytes}, "a ", []byte("a ")},
		{Column{Type: "bytea", Holds: HoldsBytes}, `\x61`, nil},
		{Column{Type: "bytea", Holds: HoldsBytes}, []byte(`\x61`), []byte(`\x61`)},
		{Column{Type: "date", Holds: HoldsClocks, Zoneless: true}, east, time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)},
		{Column{Type: "datetime", Holds: HoldsClocks}, east, east},
	} {
		got, known := c.column.Form(c.value)
		if !known {
			got = nil
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v is %v, want %v", c.column.Type, c.value, got, c.want)
		}
	}
}
