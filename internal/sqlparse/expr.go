// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"iter"
	"slices"
	"strings"
)

// Expr is an expression: one of the pointer types of this file.
//
// Precedence is known for OR, XOR, AND and NOT, for one comparison between two operands, and for +
// - * / %. Dialects differ for two adjacent comparisons without parentheses (id = 5 IN (0), id = 12
// IS FALSE), and for other operators among operands (||, &, ->, COLLATE, ::, two adjacent texts):
// such an expression is an [Opaque] operation.
type Expr interface{ Bytes() Span }

// Bytes returns the span itself: it makes every node with a Span an Expr.
func (s Span) Bytes() Span { return s }

// Column is a column, qualified or not. TRUE, FALSE, NULL, DEFAULT and words like CURRENT_TIMESTAMP
// are not columns.
type Column struct {
	Name // SQLite's "x" is the text x if no column has that name
}

// LiteralKind is the kind of a literal.
type LiteralKind uint8

// The kinds of literals.
const (
	Integer LiteralKind = iota + 1 // decimal digits, with a sign
	Decimal                        // 1.5, 1e3
	Text                           // '…' without an escape that dialects read differently; Value is unescaped
	Null
	Default // DEFAULT as a value of INSERT or SET
	Other   // TRUE, 0xFF, x'FF', DATE '…', _utf8'…', E'…' and similar literals
)

// Literal is a constant that is a whole operand.
type Literal struct {
	Span
	Kind  LiteralKind
	Value string // the value of a text, otherwise the bytes of the literal
}

// Param is a parameter.
type Param struct {
	Span
	// Index is the index of its argument: for "?" its position among the "?", for $2 and ?2 the
	// number less one, and for a name the position of its first use among those of other names. A
	// text that mixes these is Unknown.
	Index int
	Name  string // for :name, @name and $name, with its first character
}

// Call is a function call. CURRENT_TIMESTAMP and similar words are calls without parentheses. ANY
// (…) in x = ANY (…) is a call, too.
type Call struct {
	Span
	Name     Name
	Distinct bool
	Star     bool // count(*)
	Args     []Expr
	// Odd reports more than arguments between the parentheses or after them: ORDER BY, SEPARATOR,
	// FILTER, WITHIN GROUP, EXTRACT(a FROM b). Their columns, parameters and subqueries are in
	// Args, and so are words like YEAR, which look like columns.
	Odd bool
	// Filtered reports that a call is Odd only because of FILTER (WHERE …), whose condition is the last of Args.
	Filtered bool
	Over     bool // a window function
	// Window are the expressions in OVER (…): those of PARTITION BY, of which there are Partition, of ORDER BY, and of the
	// frame.
	Window    []Expr
	Partition int
	Order     []Order // ORDER BY in OVER (…)
	Framed    bool    // OVER has more, such as a frame, or the name of a window
}

// Function returns the function's name in lower case, with its schema unless that is pg_catalog, which has PostgreSQL's own
// functions.
func (c *Call) Function() string {
	name := strings.ToLower(c.Name.Parts[0].Name)
	if len(c.Name.Parts) == 1 {
		return name
	}
	return strings.TrimPrefix(name+"."+strings.ToLower(c.Name.Last().Name), "pg_catalog.")
}

// Operator is the operator of an [Operation].
type Operator uint8

// The operators. Operators that bind less tightly precede those that bind more tightly; those from
// Exists on bind no adjacent operands.
const (
	Or  Operator = iota + 1 // with two or more operands, as Xor, And, Add and Mul
	Xor                     // MySQL
	And
	Not
	Equal // with two operands, as the other comparisons
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	NullSafeEqual // <=>, IS of SQLite with a value, IS NOT DISTINCT FROM
	In            // x IN (list): x and the list; x IN (query): x and a Subquery
	Between       // x, low, high
	IsNull
	Like // LIKE, ILIKE, REGEXP, GLOB and similar operators; with ESCAPE it has three operands
	Add
	Sub
	Mul
	Div
	Mod
	Exists // with a Subquery
	Tuple  // (a, b, …) with at least two operands, or ROW(a, …)
	Parens // (x)
	Case   // CASE … END with all its operands in the order of the text
	Cast   // CAST(x AS type), CONVERT(x, type) and x::type
	Opaque // an expression of which only the operands are known
)

// Operation is an operator, or similar syntax, with its operands.
type Operation struct {
	Span
	Op       Operator
	Not      bool // NOT IN, NOT BETWEEN, IS NOT NULL, NOT LIKE; NOT EXISTS is a Not
	Keeps    bool // a Cast of PostgreSQL to a type of whole numbers, text or uuid that does not change such values, or fails
	Respells bool // a Cast that Keeps, to another type than text: as a text, the value may have another spelling
	Elements bool // a Cast of PostgreSQL to an array, which does so for its elements
	Operands []Expr
}

// Subquery is a query in parentheses as an operand, or SQLite's table after IN.
type Subquery struct {
	Span
	Query *Query
}

// Is reports whether an expression is of a type: Is[*Column](e).
func Is[T Expr](e Expr) bool {
	_, is := e.(T)
	return is
}

// As returns the operation if an expression is one with this operator, otherwise nil.
func As(e Expr, op Operator) *Operation {
	if o, ok := e.(*Operation); ok && o.Op == op {
		return o
	}
	return nil
}

// Bare returns an expression without the parentheses around it.
func Bare(e Expr) Expr {
	for {
		p := As(e, Parens)
		if p == nil {
			return e
		}
		e = p.Operands[0]
	}
}

// Any reports whether an expression, or one below it, is of some sort. Those of its queries do not
// count.
func Any(e Expr, is func(Expr) bool) bool {
	return is(e) || slices.ContainsFunc(Operands(e), func(operand Expr) bool { return Any(operand, is) })
}

// All returns some expressions and those below them, without those of their queries.
func All(list ...Expr) iter.Seq[Expr] {
	return func(yield func(Expr) bool) {
		for _, e := range list {
			if Any(e, func(e Expr) bool { return !yield(e) }) {
				return
			}
		}
	}
}

// Conjuncts returns the conditions that all hold if e does.
func Conjuncts(e Expr) (list []Expr) {
	e = Bare(e)
	op := As(e, And)
	switch {
	case e == nil:
		return nil
	case op == nil:
		return []Expr{e}
	}
	for _, operand := range op.Operands {
		list = append(list, Conjuncts(operand)...)
	}
	return list
}

// Operands returns the expressions directly below an expression, without those of its queries.
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
