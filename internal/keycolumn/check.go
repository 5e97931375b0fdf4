// SPDX-License-Identifier: Apache-2.0

package keycolumn

import (
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// columnCheck checks a column against a rule of sharding keys.
type columnCheck struct {
	name       string
	rule       sharding.Rule
	is         sharding.Description
	column     dialect.Column
	clocks     []dialect.Clock // of a rule of times; see needsClocks
	equalTexts equalTexts      // of a rule of listed texts
}

// fault says the column's name and what it holds, and then why that is wrong.
func (j columnCheck) fault(severity Severity, why, fix string) []Fault {
	return []Fault{{
		Column: j.name, Severity: severity, Fix: fix,
		Message: fmt.Sprintf("%s is %s, and the rule takes %s: %s", j.name, j.typeText(), j.takes(), why),
	}}
}

func (j columnCheck) typeText() string {
	if j.column.Type == "" {
		return "without a type"
	}
	return j.column.Type
}

func (j columnCheck) takes() string {
	if j.is.Keys == sharding.KeysUnknown {
		return "what it knows"
	}
	return string(j.is.Keys)
}

func (j columnCheck) faults() []Fault {
	var found []Fault
	switch j.is.Keys {
	case sharding.KeysIntegers:
		found = j.integers()
	case sharding.KeysTexts:
		found = j.texts()
	case sharding.KeysTimes:
		found = j.times()
	default:
		found = j.collation()
	}
	if j.column.Lax {
		found = append(found, j.fault(Warning, "the sql_mode is not strict, so that a key which does not fit is cut without an error, and its row lies where nobody looks for it",
			"add STRICT_TRANS_TABLES to the sql_mode")...)
	}
	return found
}

// integers checks a column under a rule of integers. Text counts as the decimal number
// that it is, so the rule and the database agree where the column holds integers.
func (j columnCheck) integers() []Fault {
	const bigint = "make it BIGINT"
	switch j.column.Holds {
	case dialect.HoldsIntegers, dialect.HoldsNumbers, dialect.HoldsAnything:
		return nil
	case dialect.HoldsDecimals:
		if j.column.Scale == 0 {
			return nil
		}
		return j.fault(Error, "keys come back with a fraction, 3.00, which the rule refuses", "make it BIGINT, or DECIMAL without a fraction")
	case dialect.HoldsFloats:
		return j.fault(Error, "integers above 2^53 become their neighbours, which lie on other shards", bigint)
	case dialect.HoldsBits:
		return j.fault(Error, "keys come back as bytes, which the rule refuses", bigint)
	case dialect.HoldsYears:
		return j.fault(Error, "it makes 1970 of 70, whose row lies on another shard", "make it an integer")
	case dialect.HoldsTexts, dialect.HoldsBytes, dialect.HoldsPadded:
		if !j.column.Loose {
			return nil
		}
		return j.fault(Warning, "the database compares texts with integers as floats, so that 5 is '5' and '5abc', and integers above 2^53 are their neighbours",
			"make it BIGINT; or take HashText, and give keys as texts")
	}
	return j.fault(Error, "it stores an integer as something else", bigint)
}

// texts checks a column under a rule of texts, which compares bytes.
func (j columnCheck) texts() []Fault {
	const text = "take a rule of integers, such as Hash; or make it a text with a collation that compares bytes"
	switch j.column.Holds {
	case dialect.HoldsTexts, dialect.HoldsBytes, dialect.HoldsAnything:
		return j.collation()
	case dialect.HoldsPadded:
		return j.fault(Notice, "keys shorter than that come back with zero bytes at the end, and lead to other shards", "make it VARBINARY, unless each key fills it")
	case dialect.HoldsMembers:
		if j.is.Kind == sharding.KindList { // which takes its own texts alone
			return append(j.numbered(), j.collation()...)
		}
		return j.fault(Error, "a text that is a number is stored as the member of that place, whose rows lie on other shards", "make it VARCHAR, or list the members with List")
	case dialect.HoldsSets:
		return j.fault(Error, "it brings members into an order, so that 'b,a' comes back as 'a,b'", "make it VARCHAR")
	case dialect.HoldsForms:
		return j.fault(Warning, "it brings values into a form of its own, and takes for equal what the rule tells apart",
			"make it a text or bytes; or give keys in the form in which they come back")
	case dialect.HoldsIntegers, dialect.HoldsDecimals, dialect.HoldsNumbers, dialect.HoldsFloats, dialect.HoldsBits, dialect.HoldsYears:
		return j.fault(Error, "'05', '5e0' and 5 are one number to the database, and lead to different shards", text)
	}
	return j.fault(Error, "the database takes texts for one time that lead to different shards", "take Interval, or make it a text with a collation that compares bytes")
}

// collation checks how texts are compared.
func (j columnCheck) collation() []Fault {
	if j.column.Collation == "" {
		return nil
	}
	if j.equalTexts.asked {
		return j.equalTexts.faults(j)
	}
	return []Fault{{
		Column: j.name, Severity: Warning, Collation: true,
		Message: fmt.Sprintf("%s is compared by a collation, %s, under which texts are equal that the rule tells apart, and may look for in different shards", j.name, j.column.Collation),
		Fix:     "give the column a binary collation (utf8mb4_bin; BINARY in SQLite), or bring its values into one form before they are stored and looked for",
	}}
}
