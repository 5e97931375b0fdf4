// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"database/sql/driver"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cuts reports whether the column stores another value without an error because the value does not
// fit. A server does that if the statement ignores errors (ignoring), as INSERT IGNORE does, or if
// its sql_mode is not strict; and always for surplus spaces at the end of a text. Cuts returns
// false for types whose limits are unknown. BINARY fills a shorter value with zero bytes, always.
func (c Column) Cuts(value any, ignoring bool) bool {
	if c.Unlimited {
		return false
	}
	text, isText := value.(string)
	if b, ok := value.([]byte); ok {
		text, isText = string(b), true
	}
	forced := ignoring || c.Lax
	if c.Holds == HoldsPadded && isText {
		_, length := typeOf(c.Type)
		return len(text) < length || forced && len(text) > length // zero bytes are added to a shorter one
	}
	if !forced && !strings.HasSuffix(text, " ") {
		return false
	}
	if !isText {
		text = fmt.Sprint(value)
	}
	name, length := typeOf(c.Type)
	switch c.Holds {
	case HoldsTexts:
		kept := strings.TrimRight(text, " ")
		return kept != text && name == "char" || !fits(name, length, text) && (forced || fits(name, length, kept))
	case HoldsBytes:
		return forced && !fits(name, length, text)
	case HoldsIntegers, HoldsDecimals:
		n, ok := new(big.Int).SetString(text, 10)
		least, most := c.bounds(name, length)
		return forced && ok && most != nil && (n.Cmp(least) < 0 || n.Cmp(most) > 0)
	}
	return false
}

// Renders reports whether the column stores the text of a value that is none. MySQL and MariaDB compare such a value with
// texts as a number or a time, so that 5 equals '5' and '05'.
func (c Column) Renders(value any) bool {
	switch c.Holds {
	case HoldsTexts, HoldsBytes, HoldsPadded:
	default:
		return false
	}
	plain, err := driver.DefaultParameterConverter.ConvertValue(value)
	_, isText := plain.(string)
	_, isBytes := plain.([]byte)
	return c.Loose && err == nil && plain != nil && !isText && !isBytes
}

// typeOf returns the name of a type and the number in its parentheses, 0 without one.
func typeOf(text string) (name string, length int) {
	name, rest, _ := strings.Cut(text, "(")
	digits, _, _ := strings.Cut(rest, ")")
	digits, _, _ = strings.Cut(digits, ",")
	length, _ = strconv.Atoi(digits) // 0 without digits
	name, _, _ = strings.Cut(name, " unsigned")
	return name, length
}

// fits reports whether a text fits into a column of MySQL or MariaDB, or into a "character varying"
// of PostgreSQL.
func fits(name string, length int, text string) bool {
	switch name {
	case "varchar", "char", "character varying":
		return length == 0 || utf8.RuneCountInString(text) <= length
	case "varbinary", "binary":
		return len(text) <= length
	case "tinytext", "tinyblob":
		return len(text) < 1<<8
	}
	return true
}

// bounds returns the least and the greatest number of the column, nil if they are unknown.
func (c Column) bounds(name string, length int) (least, most *big.Int) {
	bits := integerBits[name]
	unsigned := strings.Contains(c.Type, " unsigned")
	switch {
	case name == "decimal":
		most = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(length-c.Scale)), nil)
	case bits == 0:
		return nil, nil
	case unsigned:
		most = new(big.Int).Lsh(big.NewInt(1), bits)
	default:
		most = new(big.Int).Lsh(big.NewInt(1), bits-1)
	}
	least = new(big.Int).Neg(most)
	if name == "decimal" {
		least.Add(least, big.NewInt(1))
	}
	if unsigned {
		least.SetInt64(0)
	}
	return least, most.Sub(most, big.NewInt(1))
}
