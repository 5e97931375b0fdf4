package sqlparse

// Expr is an expression: one of the pointer types of this file.
//
// Precedence is known for OR, XOR, AND and NOT, for one comparison between two
// operands, and for + - * / %. Where two comparisons stand side by side without
// parentheses (id = 5 IN (0), id = 12 IS FALSE), or another operator (||, &, ->,
// COLLATE, ::, two texts in a row) stands among operands, dialects differ: that
// is an Opaque of its operands.
type Expr interface{ Bytes() Span }

// Bytes returns the span itself: it makes every node with a Span an Expr.
func (s Span) Bytes() Span { return s }

// Column is a column, qualified or not. TRUE, FALSE, NULL, DEFAULT and words like
// CURRENT_TIMESTAMP are no columns.
type Column struct {
	Span
	Name Name // SQLite's "x" is the text x where no column is called so
}

// LiteralKind says what a literal is.
type LiteralKind uint8

// The kinds of literals.
const (
	Integer LiteralKind = iota + 1 // decimal digits, with a sign
	Decimal                        // 1.5, 1e3
	Text                           // '…' without an escape that dialects read differently; Value is unescaped
	Binary                         // 0xFF, x'FF', b'01'
	Bool                           // TRUE, FALSE
	Null
	Default // DEFAULT as a value of INSERT or SET
	Typed   // DATE '…', TIMESTAMP '…', _utf8'…', E'…', N'…': Value is as it is written
)

// Literal is a constant as one whole operand.
type Literal struct {
	Span
	Kind  LiteralKind
	Value string // digits with their sign, or the text that is meant
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
	Over bool // a window function; what stands in OVER (…) is among Args
}

// Operator is an operator of logic or arithmetic.
type Operator uint8

// The operators. Comparisons are Compare.
const (
	Or Operator = iota + 1
	Xor
	And
	Add
	Sub
	Mul
	Div
	Mod
)

// Operation is operands with one operator between all of them: a AND b AND c is
// one. Sub, Div and Mod have two operands.
type Operation struct {
	Span
	Op       Operator
	Operands []Expr
}

// Not is NOT x. (! x is Opaque.)
type Not struct {
	Span
	X Expr
}

// Comparison is one of =, <>, <, <=, >, >=, <=>.
type Comparison uint8

// The comparisons.
const (
	Equal Comparison = iota + 1
	NotEqual
	Less
	LessEqual
	Greater
	GreaterEqual
	NullSafeEqual // <=>, IS of SQLite with a value, IS NOT DISTINCT FROM
)

// Compare is one comparison of two operands.
type Compare struct {
	Span
	Op          Comparison
	Left, Right Expr
}

// In is x [NOT] IN (list) or x [NOT] IN (query).
type In struct {
	Span
	X     Expr
	Not   bool
	List  []Expr
	Query *Query
}

// Between is x [NOT] BETWEEN low AND high.
type Between struct {
	Span
	X, Low, High Expr
	Not          bool
}

// IsNull is x IS [NOT] NULL.
type IsNull struct {
	Span
	X   Expr
	Not bool
}

// Like is x [NOT] LIKE pattern, ILIKE, REGEXP, GLOB and their like, with ESCAPE.
type Like struct {
	Span
	Operands []Expr // two, or three
	Not      bool
}

// Exists is [NOT] EXISTS (query); NOT is a Not around it.
type Exists struct {
	Span
	Query *Query
}

// Subquery is a query in parentheses as an operand.
type Subquery struct {
	Span
	Query *Query
}

// Tuple is (a, b, …) with at least two operands, or ROW(a, …).
type Tuple struct {
	Span
	Items []Expr
}

// Parens is (x).
type Parens struct {
	Span
	X Expr
}

// Case is CASE … END with all its operands in the order of the text.
type Case struct {
	Span
	Operands []Expr
}

// Cast is CAST(x AS type), CONVERT(x, type) and x::type.
type Cast struct {
	Span
	X Expr
}

// Opaque is an expression of which only the operands are known.
type Opaque struct {
	Span
	Operands []Expr
}

// Operands returns the expressions directly below one that is neither a column nor
// has a query of its own.
func Operands(e Expr) []Expr {
	switch e := e.(type) {
	case *Operation:
		return e.Operands
	case *Not:
		return []Expr{e.X}
	case *Compare:
		return []Expr{e.Left, e.Right}
	case *In:
		return append([]Expr{e.X}, e.List...)
	case *Between:
		return []Expr{e.X, e.Low, e.High}
	case *IsNull:
		return []Expr{e.X}
	case *Like:
		return e.Operands
	case *Call:
		return e.Args
	case *Tuple:
		return e.Items
	case *Parens:
		return []Expr{e.X}
	case *Case:
		return e.Operands
	case *Cast:
		return []Expr{e.X}
	case *Opaque:
		return e.Operands
	}
	return nil
}
