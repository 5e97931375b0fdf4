// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Schema describes tables by their logical names in lower case. It lacks tables whose columns were
// not read.
type Schema map[string]Table

// Table describes one table, as the databases report it.
type Table struct {
	Columns map[string]Column // by names in lower case
	// Unique are the columns of each unique key, the primary key included, in lower case.
	Unique [][]string
	// Primary says that the first of them is the primary key, whose columns are never NULL.
	Primary bool
	// Namespace is the PostgreSQL schema in which the unqualified table name is found, "" on other
	// databases.
	Namespace string
}

// hasKey reports whether all columns of a unique key are of some sort.
func (t Table) hasKey(of func(column string) bool) bool {
	return slices.ContainsFunc(t.Unique, func(key []string) bool {
		return !slices.ContainsFunc(key, func(column string) bool { return !of(column) })
	})
}

// Column describes how a database treats the values of a column.
type Column struct {
	Holds Holding
	// Value is how the database compares values of the column for sorting and grouping.
	Value Value
	// Least is how it compares them for MIN and MAX, for a Number: the least value of ENUM and SET
	// is determined by the text, although they sort by the position of a member. It is Value for BIT
	// and YEAR.
	Least Value
	// Unsorted is the reason why Value is unknown, if there is a specific one.
	Unsorted string
	// Collation is the collation of a text, AsBytes for bytes, or the type of other values that are written as
	// texts. Two columns with the same Collation compare with a value alike. It is "" for all others.
	Collation string
	// Single: it is a FLOAT of MySQL or MariaDB, or a DOUBLE with a number of digits, of which a text has fewer
	// digits than the result of a prepared statement.
	Single bool
	// Numbered: the database assigns a number if there is no value or, on MySQL and MariaDB, if the
	// value is 0. It is known for broadcast tables, and for columns that lead to slots or to lookup tables.
	Numbered bool
	// Varies: without a value the database computes one, such as the time. Touched: it does so at
	// every change of a row. Both are known for broadcast tables.
	Varies, Touched bool
	// Empty: a row without a value has NULL. It is known for columns that lead to slots or to lookup tables.
	Empty bool
	// Computed: the database computes every value. It is known for columns that lead to slots or to lookup tables.
	Computed bool
	// Cuts reports whether the column stores another value than this one, without an error;
	// ignoring says that the statement ignores errors. Type is the column's type, for an error.
	// Both are known for columns that lead to slots or to lookup tables; Cuts may be nil.
	Cuts func(value any, ignoring bool) bool
	Type string
	// Form returns a value in the form in which the column returns it, false if that is unknown. It is nil
	// if values lead to slots as they are. It is known for columns that lead to slots.
	Form func(value any) (form any, known bool)
	// Apart is how far from their order two times may compare. It is known for columns that lead to slots.
	Apart time.Duration
}

// fills reports whether a column that leads to slots has a default in a row without a value.
func (c Column) fills() bool { return c.Type != "" && !c.Empty && !c.Computed }

// AsBytes is the Collation of binary values.
const AsBytes = "binary"

// keeps returns an error for a value that a column would not store unchanged.
func (t Table) keeps(column string, value any, ignoring bool) error {
	c := t.Columns[strings.ToLower(column)]
	return c.keeps(column, value, ignoring)
}

// keeps is [Table.keeps] of a column with this name.
func (c *Column) keeps(name string, value any, ignoring bool) error {
	if c.Cuts == nil || value == nil || value == (unbound{}) || !c.Cuts(value, ignoring) {
		return nil
	}
	return fmt.Errorf("%w: %s is %s, which stores another value than %v without an error", sharding.ErrKeyType, name, c.Type, value)
}

// Value is how values are compared: the form of a value that is compared, and how that compares.
type Value struct {
	Type merge.Type // its Kind is 0 if that is unknown
	As   Form
	// Unordered is the reason why only equality is known, and not the order; "" if both are known.
	Unordered string
	// Wide says of integers of PostgreSQL that they have 64 bits: their sum is a decimal, and that
	// of narrower ones an integer.
	Wide bool
	// Texts says that Bytes are texts of PostgreSQL.
	Texts bool
	// Collation is that of a Weight. A UNION compares texts by one collation, which need not be theirs.
	Collation string
}

// mixed is the Collation of an expression of texts of several collations.
const mixed = "mixed"

// Form is the form of a value that is compared.
type Form uint8

// The forms of values.
const (
	Plain   Form = iota // the value itself
	Weight              // WEIGHT_STRING of MySQL and MariaDB, of a text
	Number              // an integer: that of BIT or YEAR, the position of a member of an ENUM, or of the members of a SET
	Double              // a DOUBLE, of a FLOAT: the text of a FLOAT has fewer digits than its value
	Trimmed             // the text of a CHAR of PostgreSQL, without spaces at its end
)

var conversions = [...]string{Plain: "%s", Weight: "WEIGHT_STRING(%s)", Number: "CAST(%s AS UNSIGNED)", Double: "(%s + 0E0)", Trimmed: "CAST(%s AS TEXT)"}

// of returns the expression that converts an expression to the form.
func (f Form) of(text string) string { return fmt.Sprintf(conversions[f], text) }

// selected returns the expression that is selected to compare the values of an expression.
func (v Value) selected(text string) string {
	switch n := strconv.Itoa(v.Type.Most); {
	case v.Type.Kind == merge.Stored && strings.ContainsAny(text, " ("):
		return "+(" + text + ")"
	case v.Type.Kind == merge.Stored:
		return "+" + text // so that the driver does not convert a text to a time
	case v.Type.Most > 0:
		return "CONCAT(" + v.As.of("LEFT("+text+", "+n+")") + ", LENGTH(" + text + ") > " + n + ")"
	}
	return v.As.of(text)
}

// hasPadding reports whether different values may be equal.
func (v Value) hasPadding() bool { return v.Type.Pad != "" }

// splits reports whether equal values may have different hidden columns.
func (v Value) splits() bool { return v.hasPadding() || v.Type.Most > 0 }

// untruncated returns how values compare that are not truncated to max_sort_length.
func (v Value) untruncated() Value {
	v.Type.Prefix = 0
	return v
}

// same reports whether two values compare in the same way.
func (v Value) same(w Value) bool {
	return v.Type == w.Type && v.As == w.As && v.Unordered == w.Unordered
}

// united reports whether a UNION compares two values by the collation of both.
func (v Value) united(w Value) bool { return v.Collation == w.Collation && v.Collation != mixed }

// with returns the value of an expression of which v and w are parts that have the same weights.
func (v Value) with(w Value) Value {
	if v.Collation != w.Collation {
		v.Collation = mixed
	}
	return v
}

// Holding is the type of a column's values, which decides which values are equal.
type Holding uint8

// The types of values.
const (
	Other    Holding = iota // unknown to the planner: it proves nothing
	Integers                // whole numbers
	Bytes                   // texts that are equal when their bytes are
	Folded                  // texts whose collation treats different texts as equal
	Times
	UUIDs
)
