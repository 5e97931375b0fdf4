// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"encoding/hex"
	"strings"
	"time"
)

// Form returns a value in the form in which the column returns it: of a UUID, of which a column takes several
// spellings, and of a time whose zone the column does not keep. Texts are strings, and bytes are []byte,
// whatever type the value has. known is false for a value whose form is unknown. value is of one of the types
// that drivers accept.
func (c Column) Form(value any) (form any, known bool) {
	text, isText := value.(string)
	b, isBytes := value.([]byte)
	at, isTime := value.(time.Time)
	switch {
	case isTime && c.Zoneless:
		return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC), true
	case isBytes && c.Holds == HoldsTexts && c.Hexed:
		return `\x` + hex.EncodeToString(b), true
	case isBytes && c.Holds == HoldsTexts:
		return string(b), true
	case isText && (c.Holds == HoldsBytes || c.Holds == HoldsPadded):
		return []byte(text), c.Loose || !strings.Contains(text, `\`) // which PostgreSQL reads as an escape
	case !c.IsUUID():
		return value, true
	case isBytes && c.Loose: // PostgreSQL takes bytes for something else
		return uuidForm(string(b))
	}
	return uuidForm(text)
}

// IsUUID reports whether the column has the type UUID of PostgreSQL or MariaDB.
func (c Column) IsUUID() bool { return c.Holds == HoldsForms && c.Type == "uuid" }

// uuidForm returns a UUID in small letters with four dashes.
func uuidForm(text string) (string, bool) {
	digits := strings.ReplaceAll(text, "-", "")
	if inner, braced := strings.CutPrefix(digits, "{"); braced {
		digits = strings.TrimSuffix(inner, "}")
	}
	if b, err := hex.DecodeString(digits); err != nil || len(b) != 16 {
		return text, false
	}
	d := strings.ToLower(digits)
	return d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:], true
}
