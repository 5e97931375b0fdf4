// SPDX-License-Identifier: Apache-2.0

package sqlparse

import "slices"

// Expr is an expression: one of the pointer types of this file.
//
// Precedence is known for OR, XOR, AND and NOT, for one comparison between two
// operands, and for + - * / %. Where two comparisons stand side by side without
// parentheses (id = 5 IN (0), id = 12 IS FALSE), or another operator (||, &, ->,
// COLLATE, ::, two texts in a row) stands among operands, dialects differ: that
// is an operation [Opaque].
type Expr interface{ Bytes() Span }

// Bytes returns the span itself: it makes every node with a Span an Expr.
func (s Span) Bytes() Span { return s }

// Column is a column, qualified or not. TRUE, FALSE, NULL, DEFAULT and words like
// CURRENT_TIMESTAMP are no columns.
type Column struct {
	Name // SQLite's "x" is the text x where no column is called so
}

// LiteralKind says what a literal is.
type LiteralKind uint8

// The kinds of literals.
const (
	Integer LiteralKind = iota + 1 // decimal digits, with a sign
	Decimal                        // 1.5, 1e3
	Text                           // '…' without an escape that dialects read differently; Value is unescaped
	Null
	Default // DEFAULT as a value of INSERT or SET
	Other   // TRUE, 0xFF, x'FF', DATE '…', _utf8'…', E'…' and their like
)

// Literal is a constant as one whole operand.
type Literal struct {
	Span
	Kind  LiteralKind
	Value string // the text that is meant, or what is written
}

// Param is a parameter.
type Param struct {
	Span
	// Index is which argument it takes, from 0: of "?" the place among the "?",
	// of $2 and ?2 the number less one, and of a name the place of its first use
	// among those of other names. A text that mixes these is Unknown.
	Index int
	Name  string // of :name, @name, $name, with what it begins with
}

// Call is a function call. CURRENT_TIMESTAMP and its like are calls without
// parentheses, and ANY (…) in x = ANY (…) is one, too.
type Call struct {
	Span
	Name     Name
	Distinct bool
	Star     bool // count(*)
	Args     []Expr
	// Odd reports more than arguments between the parentheses or behind them:
	// ORDER BY, SEPARATOR, FILTER, WITHIN GROUP, EXTRACT(a FROM b). Its columns,
	// parameters and subqueries are among Args, as are words like YEAR that read
	// like columns.
	Odd  bool
	Over bool // a window function
	// Window is what stands in OVER (…), of which the first Partition are those of
	// PARTITION BY.
	Window    []Expr
	Partition int
}

// Operator is what an [Operation] does with its operands.
type Operator uint8

// The operators. A looser one stands before a tighter one; those from Exists on bind
// nothing beside them.
const (
	Or  Operator = iota + 1 // of two operands or more, as Xor, And, Add and Mul are
	Xor                     // MySQL
	And
	Not
	Equal // of two operands, as the other comparisons are
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	NullSafeEqual // <=>, IS of SQLite with a value, IS NOT DISTINCT FROM
	In            // x IN (list): x and the list; x IN (query): x and a Subquery
	Between       // x, low, high
	IsNull
	Like // LIKE, ILIKE, REGEXP, GLOB and their like; with ESCAPE of three operands
	Add
	Sub
	Mul
	Div
	Mod
	Exists // of a Subquery
	Tuple  // (a, b, …) with at least two operands, or ROW(a, …)
	Parens // (x)
	Case   // CASE … END with all its operands in the order of the text
	Cast   // CAST(x AS type), CONVERT(x, type) and x::type
	Opaque // of an expression of which only the operands are known
)

// Operation is an operator, or syntax that is like one, with its operands.
type Operation struct {
	Span
	Op       Operator
	Not      bool // NOT IN, NOT BETWEEN, IS NOT NULL, NOT LIKE; NOT EXISTS is a Not
	Keeps    bool // a Cast of PostgreSQL to a type of whole numbers, text or uuid: it keeps such values, or fails
	Operands []Expr
}

// Subquery is a query in parentheses as an operand, or SQLite's table behind IN.
type Subquery struct {
	Span
	Query *Query
}

// As returns an expression as the operation that it is, nil if it is not one of this
// operator.
func As(e Expr, op Operator) *Operation {
	if o, ok := e.(*Operation); ok && o.Op == op {
		return o
	}
	return nil
}

// Operands returns the expressions directly below one, those of its queries left out.
func Operands(e Expr) []Expr {
	switch e := e.(type) {
	case *Operation:
		return e.Operands
	case *Call:
		if len(e.Window) > 0 {
			return slices.Concat(e.Args, e.Window)
		}
		return e.Args
	}
	return nil
}
