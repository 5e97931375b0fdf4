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
	clocks     []dialect.Clock // for a rule of times; see needsClocks
	equalTexts equalTexts      // for a rule of listed texts
}

// fault returns a fault whose message has the column's name, what it holds, and why that is wrong.
func (j columnCheck) fault(severity Severity, why, fix string) []Fault {
	return []Fault{{
		Column: j.name, Severity: severity, Fix: fix,
		Message: fmt.Sprintf("%s is %s, but the rule accepts %s: %s", j.name, j.typeText(), j.takes(), why),
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
		return "the keys that it knows"
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
		found = append(found, j.fault(Warning, "the sql_mode is not strict, so a key that does not fit is truncated without an error, and its row cannot be found",
			"add STRICT_TRANS_TABLES to the sql_mode")...)
	}
	return found
}

// integers checks a column under a rule of integers. Text counts as its decimal number, so the rule
// and the database agree if the column holds integers.
func (j columnCheck) integers() []Fault {
	const bigint = "change it to BIGINT"
	switch j.column.Holds {
	case dialect.HoldsIntegers, dialect.HoldsNumbers, dialect.HoldsAnything:
		return nil
	case dialect.HoldsDecimals:
		if j.column.Scale == 0 {
			return nil
		}
		return j.fault(Error, "keys come back with a fraction, 3.00, which the rule refuses", "change it to BIGINT, or to DECIMAL without a fraction")
	case dialect.HoldsFloats:
		return j.fault(Error, "integers above 2^53 are rounded to others, which are on other shards", bigint)
	case dialect.HoldsBits:
		return j.fault(Error, "keys come back as bytes, which the rule refuses", bigint)
	case dialect.HoldsYears:
		return j.fault(Error, "it converts 70 to 1970, whose row is on another shard", "change it to an integer")
	case dialect.HoldsTexts, dialect.HoldsBytes, dialect.HoldsPadded:
		if !j.column.Loose {
			return nil
		}
		return j.fault(Warning, "the database compares texts with integers as floats, so 5 equals '5' and '5abc', and integers above 2^53 equal others",
			"change it to BIGINT; or use HashText, and pass keys as texts")
	}
	return j.fault(Error, "it stores an integer as something else", bigint)
}

// texts checks a column under a rule of texts, which compares bytes.
func (j columnCheck) texts() []Fault {
	const text = "use a rule of integers, such as Hash; or change it to a text with a collation that compares bytes"
	switch j.column.Holds {
	case dialect.HoldsTexts, dialect.HoldsBytes, dialect.HoldsAnything:
		return j.collation()
	case dialect.HoldsPadded:
		return j.fault(Notice, "shorter keys are refused, because they would come back with zero bytes at the end", "change it to VARBINARY, unless each key has the full length")
	case dialect.HoldsMembers:
		if j.is.Kind == sharding.KindList { // a List accepts only its own texts
			return append(j.numbered(), j.collation()...)
		}
		return j.fault(Error, "a text that is a number is stored as the member of that position, whose rows are on other shards", "change it to VARCHAR, or list the members with List")
	case dialect.HoldsSets:
		return j.fault(Error, "it sorts members, so 'b,a' comes back as 'a,b'", "change it to VARCHAR")
	case dialect.HoldsForms:
		if j.column.IsUUID() {
			return j.fault(Notice, "it takes several spellings of a UUID, which shardsql knows, and the rule alone does not",
				"pass keys in small letters with dashes where you call the router yourself")
		}
		return j.fault(Warning, "it normalizes values, and treats texts as equal that the rule distinguishes",
			"change it to a text or bytes; or pass keys in the form in which they come back")
	case dialect.HoldsIntegers, dialect.HoldsDecimals, dialect.HoldsNumbers, dialect.HoldsFloats, dialect.HoldsBits, dialect.HoldsYears:
		return j.fault(Error, "'05', '5e0' and 5 are one number to the database, and lead to different shards", text)
	}
	return j.fault(Error, "the database treats texts as one time that lead to different shards", "use Interval, or change it to a text with a collation that compares bytes")
}

// comparesBytes is the fix for a column that treats texts with different bytes as equal.
const comparesBytes = "let the column compare bytes (the collation utf8mb4_bin; text or varchar of PostgreSQL with a deterministic collation; BINARY in SQLite)"

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
		Message: fmt.Sprintf("%s is a column with the collation %s, under which texts are equal that the rule distinguishes and may place on different shards", j.name, j.column.Collation),
		Fix:     comparesBytes + ", or normalize its values before they are stored and searched for",
	}}
}
