// SPDX-License-Identifier: Apache-2.0

package sqlparse

// Span is the part Text[From:To] of a statement's text.
type Span struct{ From, To int }

// Of returns the bytes of the span.
func (s Span) Of(text string) string { return text[s.From:s.To] }

// In reports whether the part lies in another one.
func (s Span) In(outer Span) bool { return s.From >= outer.From && s.To <= outer.To }

// Verb is the kind of a statement.
type Verb uint8

// The verbs. That of a statement with data-modifying CTEs (PostgreSQL) is the verb of what follows them.
const (
	Unknown Verb = iota // not parsed: DDL, SET, CALL, several statements in one text, or unknown syntax
	Select              // includes WITH … SELECT, and VALUES and TABLE as queries
	Insert
	Replace // MySQL's and SQLite's REPLACE INTO, and SQLite's INSERT OR REPLACE
	Update
	Delete
)

// Statement is the tree of one statement. It is immutable.
type Statement struct {
	Text string
	Verb Verb

	// Explains says of a Select that the database does not execute it, but explains its execution.
	Explains bool

	Query  *Query  // for Select
	Insert *Input  // for Insert and Replace
	Change *Change // for Update and Delete

	// Writes are the data-modifying CTEs of PostgreSQL, in the order of the text. Each is a statement of its own, with the
	// CTEs before it, that has the text and the parameters of the whole, and the Names in its own part of the text.
	Writes []*Statement

	// Params are the parameters in the order of the text, without those of rows that share the
	// expressions of another row.
	Params []*Param
	// Args is the number of arguments that the parameters need: the highest Index and one.
	Args int
	// Names are the names that could be tables: all table references of a tree, CTEs included, and
	// every identifier of an Unknown text, words inside its strings included. They are in lower
	// case, without quotes and schemas, and without duplicates.
	Names []string
	// Why says where the parser failed in an Unknown text, for messages: near "PROCEDURE", at the
	// end.
	Why string
	// HasMore reports that the first statement of an Unknown text could be parsed, and that another one follows.
	HasMore bool
	// Executable reports comments that some servers execute. Limiting reports hints in comments
	// that limit the result of a statement (SET_VAR, MAX_EXECUTION_TIME).
	Executable, Limiting bool
}

// ReadsOnly reports whether a statement is a query without data-modifying CTEs.
func (s *Statement) ReadsOnly() bool { return s.Verb == Select && s.Writes == nil }

// Ident is a name with its bytes in the text.
type Ident struct {
	Span
	Name string // without quotes
}

// Name is a name with its qualifiers: schema.table.column.
type Name struct {
	Span
	Parts []Ident // at least one
}

// With is WITH [RECURSIVE] name [(columns)] AS (query), ….
type With struct {
	Span
	Recursive bool
	Tables    []CTE
}

// CTE is one common table expression.
type CTE struct {
	Span
	Name    Ident
	Columns []Ident
	Query   *Query
	// Write is a data-modifying CTE, otherwise nil. Query then stands for the rows that it returns: a SELECT of RETURNING, from
	// its table first, by conditions that these rows satisfy.
	Write *Statement
}

// Query is a SELECT, or several that are combined by UNION or other set operations, with their
// clauses.
type Query struct {
	Span            // without parentheses around it
	With    *With   // may be nil
	Parts   []*Part // one, or the branches of UNION, INTERSECT, EXCEPT from left to right
	OrderBy []Order
	Limit   *Limit // may be nil
	// Locks are FOR UPDATE, FOR SHARE and LOCK IN SHARE MODE, with their options.
	Locks []Lock
	// After is the offset at which ORDER BY, LIMIT or a lock could be added: the end of the last
	// part.
	After int
}

// IsPlain reports whether a query is one part without any clause around it.
func (q *Query) IsPlain() bool {
	return len(q.Parts) == 1 && q.With == nil && len(q.OrderBy) == 0 && q.Limit == nil && len(q.Locks) == 0
}

// SetOp is the set operation between a part and the parts before it.
type SetOp uint8

// The set operations. INTERSECT binds more tightly than the others in some dialects: a query that
// mixes it with others and has no parentheses is not parsed.
const (
	First SetOp = iota
	UnionAll
	Union
	ExceptAll
	Except
	IntersectAll
	Intersect
)

// Part is one branch of a query: a SELECT, a query in parentheses, VALUES, or a
// whole table. Exactly one of Select, Nested, Values and Table is set.
type Part struct {
	Span
	Op     SetOp
	Select *Core
	Nested *Query // (SELECT … ORDER BY …)
	Values []Row
	Table  *Table // TABLE name of MySQL and PostgreSQL, and SQLite's x IN name
}

// Core is one SELECT.
type Core struct {
	Span
	Distinct   bool
	DistinctOn []Expr // PostgreSQL
	// Modifiers are MySQL's words after SELECT (STRAIGHT_JOIN, SQL_NO_CACHE, SQL_CALC_FOUND_ROWS,
	// HIGH_PRIORITY), in upper case.
	Modifiers []string
	Items     []Item
	From      []Source // separated by commas
	Where     Expr     // may be nil
	GroupBy   []Expr
	Rollup    bool // WITH ROLLUP, GROUPING SETS, CUBE
	Having    Expr
	HavingAt  int    // the start of the word HAVING, 0 without one
	Windows   []Expr // Opaque: the text between the parentheses of each
	ItemsEnd  int    // the end of the last selected item, after which a column can be added
}

// Item is one selected expression.
type Item struct {
	Span
	Expr  Expr  // nil for a star
	Star  bool  // * or name.*
	Of    Name  // for name.*
	Alias Ident // Name is "" without one
}

// Order is one expression of ORDER BY.
type Order struct {
	Span
	Expr       Expr
	Descending bool
	Nulls      Nulls
}

// Nulls is NULLS FIRST or NULLS LAST.
type Nulls uint8

// The positions of NULL in an order.
const (
	NullsDefault Nulls = iota
	NullsFirst
	NullsLast
)

// Limit is LIMIT n [OFFSET m], LIMIT m, n, and FETCH FIRST n ROWS ONLY.
type Limit struct {
	Span
	Count  Expr // nil for OFFSET alone and LIMIT ALL
	Offset Expr // may be nil
	Ties   bool // FETCH … WITH TIES
}

// Lock is one locking clause.
type Lock struct {
	Span
	Mode Span   // FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE
	Of   []Name // FOR UPDATE OF a, b
	Wait Span   // NOWAIT, SKIP LOCKED, WAIT 5; empty if there is none
}

// Source is one element of FROM: exactly one of Table, Query, Join, Function is
// set.
type Source struct {
	Span
	Table    *Table
	Query    *Query // (SELECT …) alias
	Join     *Join
	Function *Call // a table function: json_each(…), generate_series(…)

	Alias   Ident // of Query and Function; Table has its own
	Columns []Ident
	Lateral bool
	Ordinal bool // WITH ORDINALITY, whose column is the last one
}

// Table is one reference to a table by name.
type Table struct {
	Span
	Name      Name
	Alias     Ident
	Partition Span // PARTITION (…)
}

// JoinKind is the kind of a join.
type JoinKind uint8

// The kinds of joins. A comma is a CrossJoin that binds less tightly.
const (
	InnerJoin JoinKind = iota // JOIN, INNER JOIN, STRAIGHT_JOIN, CROSS JOIN with ON
	LeftJoin
	RightJoin
	FullJoin
	CrossJoin
)

// Join is two sources and their join condition.
type Join struct {
	Span
	Kind        JoinKind
	Left, Right *Source
	On          Expr
	Using       []Ident
}

// Input is an INSERT or REPLACE.
type Input struct {
	Span
	With  *With
	Table Table // the table of INTO; it has an alias in PostgreSQL and SQLite
	// Ignore is INSERT IGNORE and INSERT OR IGNORE; Or is the word of another INSERT OR … of SQLite
	// (ABORT, FAIL, ROLLBACK), in upper case.
	Ignore  bool
	Or      string
	Columns []Ident
	Rows    []Row  // VALUES, and MySQL's SET as one row
	Query   *Query // INSERT … SELECT
	Default bool   // DEFAULT VALUES
	// Overridden is PostgreSQL's OVERRIDING USER VALUE, by which numbers of the database are stored in place of given values.
	Overridden bool

	Conflicts []Conflict
	Returning []Item
}

// Row is one tuple of VALUES. Tuples with the same bytes share the expressions of an earlier row of
// the same text, and so do tuples of parameters alone whose numbers continue those of an earlier row: if a
// parameter of Values has an Index, this row takes the argument Index+FirstParam. FirstParam is 0 in a row
// with its own expressions, for parameters with names, and without parameters.
type Row struct {
	Span
	Values     []Expr
	FirstParam int
}

// Shares reports whether a row has the expressions of an earlier row.
func (r Row) Shares() bool { return len(r.Values) > 0 && r.Values[0].Bytes().To < r.From }

// Conflict says what an INSERT does if a row with its unique key exists: MySQL's ON DUPLICATE KEY
// UPDATE, and ON CONFLICT of the others.
type Conflict struct {
	Span
	Target     []Expr // the target of ON CONFLICT (…); without it any unique key counts
	Constraint Ident  // the name of ON CONFLICT ON CONSTRAINT
	Partial    Expr   // WHERE of the target
	Nothing    bool   // DO NOTHING
	Set        []Assignment
	Where      Expr // the WHERE of DO UPDATE
}

// Assignment is one column = value of SET. PostgreSQL's and SQLite's (a, b) = (…) has several
// columns.
type Assignment struct {
	Span
	Columns []Name
	Value   Expr
}

// Change is an UPDATE or DELETE.
type Change struct {
	Span
	With *With
	// Targets are the changed tables. An UPDATE of MySQL with several tables has all of them in
	// From and none here, because the columns in Set determine which tables change. DELETE a, b
	// FROM … names aliases of From.
	Targets []Table
	// From are the other tables that are read: UPDATE … FROM, DELETE … USING, and MySQL's joins.
	From  []Source
	Multi bool // MySQL's forms with several tables
	// Ignore is UPDATE IGNORE and UPDATE OR IGNORE; Or is the word of another UPDATE OR … of
	// SQLite, in upper case.
	Ignore bool
	Or     string

	Set       []Assignment
	Where     Expr
	OrderBy   []Order
	Limit     *Limit
	Returning []Item
}
