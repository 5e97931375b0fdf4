// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"slices"
	"time"
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
	// Total are those of them in whose columns no two rows are equal: two rows may be if they have NULL, or if the key is one of
	// some rows only.
	Total [][]string
	// Partial are those of them that are keys of some rows only, unless another one of the same columns is a key of all rows.
	Partial [][]string
	// Namespace is the PostgreSQL schema in which the unqualified table name is found, "" on other
	// databases.
	Namespace string
	// Ambiguous is the name of one of two columns of PostgreSQL whose names differ only in case, "" if there are none.
	Ambiguous string
	// Unfollowed describes, for an error, the stored map that assigns the slots of the table if the program does not follow it;
	// otherwise it is "".
	Unfollowed string
}

// Written returns the name of a column as the database has it. PostgreSQL finds "userEmail" by no other letters.
func (t Table) Written(column string) string { return cmp.Or(t.Columns[column].Name, column) }

// Visible returns the names of the columns that * selects and that an INSERT without a list of columns fills, in no order.
func (t Table) Visible() []string {
	names := make([]string, 0, len(t.Columns))
	for name, c := range t.Columns {
		if !c.Invisible {
			names = append(names, name)
		}
	}
	return names
}

// HasKey reports whether all columns of one of some keys are of some sort.
func HasKey(keys [][]string, of func(column string) bool) bool {
	return slices.ContainsFunc(keys, func(key []string) bool {
		return !slices.ContainsFunc(key, func(column string) bool { return !of(column) })
	})
}

// Column describes how a database treats the values of a column.
type Column struct {
	// Name is the column's name on PostgreSQL, which may have capital letters. Other databases find it by its name in lower case.
	Name  string
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
	// Members is the type of an ENUM or a SET of MySQL or MariaDB, with its members, "" for all others.
	Members string
	// Single: it is a FLOAT of MySQL or MariaDB, or a DOUBLE with a number of digits, of which a text has fewer
	// digits than the result of a prepared statement.
	Single bool
	// Unsigned: it is of an integer type of MySQL or MariaDB without negative numbers.
	Unsigned bool
	// JSON: it is a json or a jsonb of PostgreSQL.
	JSON bool
	// Numbered: the database assigns a number if there is no value or, on MySQL and MariaDB, if the
	// value is 0. It is known for sharded and broadcast tables.
	Numbered bool
	// Varies: without a value the database computes one, such as the time. Touched: it does so at
	// every change of a row. Both are known for sharded and broadcast tables.
	Varies, Touched bool
	// Invisible: * does not select it, and an INSERT without a list of columns does not fill it, on MySQL and MariaDB.
	Invisible bool
	// Empty: a row without a value has NULL. It is known for columns that lead to slots or to lookup tables.
	Empty bool
	// Computed: the database computes every value. It is known for sharded and broadcast tables.
	Computed bool
	// Storage is how the column stores values, nil if that is unknown, and Type is the column's type, for an error. Both are
	// known for columns that lead to slots or to lookup tables.
	Storage Storage
	Type    string
	// Formed: values lead to slots in their [Storage.Form], and not as they are. It is known for columns that lead to slots.
	Formed bool
	// Skew is how far from their order two times may compare. It is known for columns that lead to slots.
	Skew time.Duration
}

// HoldsTexts reports whether the column is known to hold texts.
func (c Column) HoldsTexts() bool { return c.Holds == Bytes || c.Holds == Folded || c.Value.IsText() }

// Storage says how a column stores values. Those of two columns that store values in the same way are equal by
// reflect.DeepEqual.
type Storage interface {
	// Cuts reports whether the column stores another value than this one, without an error; ignoring says that the
	// statement ignores errors.
	Cuts(value any, ignoring bool) bool
	// Form returns a value in the form in which the column returns it, false if that is unknown.
	Form(value any) (form any, known bool)
}

// Fills reports whether a column that leads to slots has a default in a row without a value.
func (c Column) Fills() bool { return c.Type != "" && !c.Empty && !c.Computed }

// AsBytes is the Collation of binary values.
const AsBytes = "binary"

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

// EqualByText reports whether the database considers two values equal exactly if their texts are, in the form in which the column returns them.
func (h Holding) EqualByText() bool { return h == Integers || h == Bytes || h == UUIDs }

// EqualByRule reports whether the database considers two values equal exactly if a rule does.
func (h Holding) EqualByRule() bool { return h.EqualByText() || h == Times }
