// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Schema is what the databases say of tables, by their logical names in lower
// case. A table that is missing is one whose columns nobody has read.
type Schema map[string]Table

// Table is what the databases say of one table.
type Table struct {
	Columns map[string]Column // by names in lower case
	// Unique are the columns of each unique key, the primary key among them, in
	// lower case.
	Unique [][]string
	// Namespace is the schema of PostgreSQL in which the table is found by its name alone,
	// "" on other databases.
	Namespace string
}

// Column is what a database makes of the values of a column.
type Column struct {
	Holds Holding
	// Value is how the database compares values of the column when it sorts and groups.
	Value Value
	// Least is how it compares them for MIN and MAX, of a Number: the least of
	// ENUM and SET is by the text, though they sort by the place of a member.
	Least Value
	// Unsorted is why Value is not known, where there is more to say than that.
	Unsorted string
	// Numbered: the database makes a number where none is given or, on MySQL and
	// MariaDB, where 0 is. Known of broadcast tables, and of columns that lead to slots.
	Numbered bool
	// Varies: where no value is given, the database computes one, such as the time;
	// Touched: it does so at every change of a row. Both are known of broadcast tables.
	Varies, Touched bool
	// Computed: the database makes every value, and takes none.
	Computed bool
	// Cuts reports whether the column makes another value of one, without an error; ignoring
	// says that the statement ignores errors. Type is the column's, for an error. Both are
	// known of columns that lead to slots or to lookup tables; Cuts may be nil.
	Cuts func(value any, ignoring bool) bool
	Type string
}

// keeps returns an error for a value of which the column makes another one.
func (c Column) keeps(name string, value any, ignoring bool) error {
	if c.Cuts == nil || value == nil || value == (unbound{}) || !c.Cuts(value, ignoring) {
		return nil
	}
	return fmt.Errorf("%w: %s is %s, which cuts %v without an error", sharding.ErrKeyType, name, c.Type, value)
}

// Value is how values are compared: what is made of them, and how that compares.
type Value struct {
	Type merge.Type // its Kind is 0 where that is not known
	As   Form
	// Unordered is why only equal values are told by it, and not which is less; "" where
	// both are.
	Unordered string
	// Wide says of integers of PostgreSQL that they have 64 bits: their sum is a decimal,
	// and that of narrower ones an integer.
	Wide bool
	// Texts says of Bytes that they are texts of PostgreSQL.
	Texts bool
}

// Form is what is made of a value before it is compared.
type Form uint8

// The forms.
const (
	Plain   Form = iota // the value itself
	Weight              // WEIGHT_STRING of MySQL and MariaDB, of a text
	Number              // the place of a member of an ENUM, or of those of a SET
	Trimmed             // the text of a CHAR of PostgreSQL, without spaces at its end
)

// of returns the expression that makes the form of an expression.
func (f Form) of(text string) string {
	switch f {
	case Weight:
		return "WEIGHT_STRING(" + text + ")"
	case Number:
		return "CAST(" + text + " AS UNSIGNED)"
	case Trimmed:
		return "CAST(" + text + " AS TEXT)"
	}
	return text
}

// selected returns what is selected to compare the values of an expression.
func (v Value) selected(text string) string {
	switch n := strconv.Itoa(v.Type.Most); {
	case v.Type.Kind == merge.Stored && strings.ContainsAny(text, " ("):
		return "+(" + text + ")"
	case v.Type.Kind == merge.Stored:
		return "+" + text // so that the driver does not make a time of a text
	case v.Type.Most > 0:
		return "CONCAT(" + v.As.of("LEFT("+text+", "+n+")") + ", LENGTH(" + text + ") > " + n + ")"
	}
	return v.As.of(text)
}

// loose reports whether values of different forms may be equal.
func (v Value) loose() bool { return len(v.Type.Pad) > 0 }

// untruncated is how values compare where none is cut to max_sort_length.
func (v Value) untruncated() Value {
	v.Type.Prefix = 0
	return v
}

// same reports whether two values compare in the same way.
func (v Value) same(w Value) bool {
	a, b := v.Type, w.Type
	return v.As == w.As && v.Unordered == w.Unordered && a.Kind == b.Kind && a.Collation == b.Collation && a.Prefix == b.Prefix && a.Most == b.Most && string(a.Pad) == string(b.Pad)
}

// Holding is what a column holds, as far as it decides which values are equal.
type Holding uint8

// What columns hold.
const (
	Other    Holding = iota // unknown to the planner: it proves nothing
	Integers                // whole numbers
	Bytes                   // texts that are equal when their bytes are
	Folded                  // texts of which the collation takes several for one
	Times
)
