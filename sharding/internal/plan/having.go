package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// having takes in HAVING: conditions about numbers.
func (c *combiner) having() (why string) {
	if c.core.Having == nil {
		return ""
	}
	if len(c.core.GroupBy) == 0 {
		return "HAVING without GROUP BY is not combined" + addKey
	}
	if !c.plainParams() && slices.ContainsFunc(c.statement.Params, func(p *sqlparse.Param) bool { return inside(p.Span, c.core.Having.Bytes()) }) {
		return "numbered and named parameters are not combined with HAVING; write ? for each"
	}
	before := c.of.group.quotients
	c.of.group.having, why = c.condition(c.core.Having)
	if why == "" && c.of.group.quotients > before && c.dialect.Engine == merge.MySQL && !c.dialect.Division.Rounds {
		return "with how many digits MariaDB compares an AVG or a quotient in HAVING is not known; compare a SUM with a multiple of the COUNT" + addKey
	}
	return why
}

const onlyNumbers = "in HAVING only comparisons of numbers are combined; put the condition into WHERE if it is about a column of GROUP BY"

func (c *combiner) condition(e sqlparse.Expr) (merge.Expr, string) {
	o, ok := bare(e).(*sqlparse.Operation)
	if !ok {
		return nil, onlyNumbers
	}
	made, why := c.truth(o)
	if o.Not {
		made = merge.Not(made)
	}
	return made, why
}

// truth is an operation whose value is true, false or NULL, without its NOT.
func (c *combiner) truth(o *sqlparse.Operation) (merge.Expr, string) {
	switch o.Op {
	case sqlparse.And:
		parts, why := each(o.Operands, c.condition)
		return merge.And(parts...), why
	case sqlparse.Or:
		parts, why := each(o.Operands, c.condition)
		return merge.Or(parts...), why
	case sqlparse.Not:
		of, why := c.condition(o.Operands[0])
		return merge.Not(of), why
	case sqlparse.IsNull:
		x, _, why := c.number(o.Operands[0])
		return merge.IsNull(x), why
	case sqlparse.Between:
		low, why := c.compare(">=", o.Operands[0], o.Operands[1])
		if why != "" {
			return nil, why
		}
		high, why := c.compare("<=", o.Operands[0], o.Operands[2])
		return merge.And(low, high), why
	}
	if op := comparisons[o.Op]; op != "" {
		return c.compare(op, o.Operands[0], o.Operands[1])
	}
	return nil, onlyNumbers
}

// each makes expressions of a list.
func each(list []sqlparse.Expr, of func(sqlparse.Expr) (merge.Expr, string)) (all []merge.Expr, why string) {
	for _, e := range list {
		one, why := of(e)
		if why != "" {
			return nil, why
		}
		all = append(all, one)
	}
	return all, ""
}

var comparisons = map[sqlparse.Operator]string{
	sqlparse.Equal: "=", sqlparse.NotEqual: "<>", sqlparse.Less: "<", sqlparse.LessEqual: "<=", sqlparse.Greater: ">", sqlparse.GreaterEqual: ">=",
}

func (c *combiner) compare(op string, left, right sqlparse.Expr) (merge.Expr, string) {
	sides, why := each([]sqlparse.Expr{left, right}, func(e sqlparse.Expr) (merge.Expr, string) {
		made, _, why := c.number(e)
		return made, why
	})
	if why != "" {
		return nil, why
	}
	return merge.Comparison(c.dialect, op, sides[0], sides[1]), ""
}

// number returns an expression over aggregates, groups and numbers, and how its values
// compare. On SQLite that is known with each value.
func (c *combiner) number(e sqlparse.Expr) (made merge.Expr, kind merge.Kind, why string) {
	switch e := bare(e).(type) {
	case *sqlparse.Literal:
		return c.literal(e)
	case *sqlparse.Param:
		c.of.group.params = append(c.of.group.params, e.Index)
		return merge.Argument(e.Index), c.exact(), ""
	case *sqlparse.Operation:
		if e.Op < sqlparse.Not || e.Op >= sqlparse.Add && e.Op <= sqlparse.Mod {
			return c.operation(e)
		}
	case *sqlparse.Call:
		switch name := nameOf(e); {
		case combined(e) != 0 || e.Odd || e.Over:
		case aggregates[name] == average && aggregated(e) && !e.Distinct:
			return c.average(e)
		case len(e.Args) == 2 && (name == "coalesce" || name == "ifnull" || name == "nullif"), name == "coalesce" && len(e.Args) > 0, name == "round":
			return c.call(e, name)
		}
	case *sqlparse.Column:
		if found, why := c.ordered(e); why == "" && found != sqlparse.Expr(e) && aggregated(found) && !c.ambiguous(e) {
			return c.number(found)
		}
	}
	return c.operand(e)
}

// exact is how numbers compare that are no floats.
func (c *combiner) exact() merge.Kind {
	if c.dialect.Engine == merge.SQLite {
		return merge.Stored
	}
	return merge.Decimal
}

// wider is how numbers compare some of which are of the one kind and some of the other.
func (c *combiner) wider(a, b merge.Kind) merge.Kind {
	if c.dialect.Engine != merge.SQLite && (a == merge.Float || b == merge.Float) {
		return merge.Float
	}
	return c.exact()
}

// operand is an aggregate, or what the groups are made by.
func (c *combiner) operand(e sqlparse.Expr) (merge.Expr, merge.Kind, string) {
	if aggregated(e) && combined(e) == 0 {
		return nil, 0, c.text(e) + " is not combined: only + - * /, ROUND, COALESCE, IFNULL and NULLIF are, of COUNT, SUM, AVG, MIN and MAX" + addKey
	}
	at, why := c.column(e)
	if why != "" {
		return nil, 0, why
	}
	v := c.of.group.values[at]
	switch v.Type.Kind {
	case merge.Integer, merge.Decimal, merge.Float, merge.Stored:
		if v.As == Plain {
			return merge.Column(at, v.Type.Kind), c.wider(v.Type.Kind, 0), ""
		}
	}
	return nil, 0, onlyNumbers
}

func (c *combiner) literal(e *sqlparse.Literal) (merge.Expr, merge.Kind, string) {
	n, err := strconv.ParseInt(e.Value, 10, 64)
	f, noFloat := strconv.ParseFloat(e.Value, 64)
	switch {
	case e.Kind == sqlparse.Integer && err == nil:
		return merge.Constant(n, merge.Integer), c.exact(), ""
	case e.Kind == sqlparse.Null:
		return merge.Constant(nil, merge.Integer), c.exact(), ""
	case e.Kind != sqlparse.Decimal || noFloat != nil:
		return nil, 0, onlyNumbers
	case c.dialect.Engine == merge.SQLite || strings.ContainsAny(e.Value, "eE"):
		return merge.Constant(f, merge.Float), c.wider(merge.Float, 0), ""
	}
	return merge.Constant([]byte(e.Value), merge.Decimal), merge.Decimal, ""
}

var arithmetic = map[sqlparse.Operator]byte{sqlparse.Add: '+', sqlparse.Sub: '-', sqlparse.Mul: '*', sqlparse.Div: '/'}

func (c *combiner) operation(e *sqlparse.Operation) (made merge.Expr, kind merge.Kind, why string) {
	op := arithmetic[e.Op]
	switch op {
	case 0:
		return nil, 0, onlyNumbers
	case '/':
		c.of.group.quotients++
	}
	if c.dialect.Engine == merge.MySQL && averages(e) {
		return nil, 0, "with how many digits servers go on with an AVG depends on how they sort; write SUM(x) / COUNT(x)" + addKey
	}
	for i, operand := range e.Operands {
		next, of, why := c.number(operand)
		switch {
		case why != "":
			return nil, 0, why
		case i == 0:
			made, kind = next, of
		default:
			made, kind = merge.Arithmetic(c.dialect, op, made, next), c.wider(kind, of)
		}
	}
	return made, kind, ""
}

// averages reports whether there is an AVG in an expression.
func averages(e sqlparse.Expr) bool {
	call, ok := e.(*sqlparse.Call)
	return ok && aggregates[nameOf(call)] == average || slices.ContainsFunc(sqlparse.Operands(e), averages)
}

// average is the sum of all shards divided by their count.
func (c *combiner) average(e *sqlparse.Call) (merge.Expr, merge.Kind, string) {
	of := c.text(e.Args[0])
	_, why := c.value(e.Args[0])
	if why != "" {
		return nil, 0, why
	}
	v, why := c.summand(e.Args[0])
	if why != "" {
		return nil, 0, why
	}
	g := c.of.group
	g.quotients++
	sum := merge.Column(g.add(merge.Aggregate{Function: merge.Sum, Kind: v.Type.Kind, Column: c.beside("SUM(" + of + ")")}, v), v.Type.Kind)
	count := merge.Column(g.add(merge.Aggregate{Function: merge.Count, Column: c.beside("COUNT(" + of + ")")}, v), merge.Integer)
	if c.dialect.Engine == merge.SQLite { // an average is a float there
		sum = merge.Arithmetic(c.dialect, '*', sum, merge.Constant(1.0, merge.Float))
	}
	exact := c.dialect
	exact.Division.Rounds = false // MySQL rounds a quotient before it goes on, but no average
	return merge.Arithmetic(exact, '/', sum, count), c.wider(v.Type.Kind, 0), ""
}

// call is ROUND, COALESCE, IFNULL or NULLIF.
func (c *combiner) call(e *sqlparse.Call, name string) (made merge.Expr, kind merge.Kind, why string) {
	digits := 0
	operands := e.Args
	if name == "round" && len(operands) == 2 {
		v, ok := constant(operands[1])
		n, isNumber := v.literal.(int64)
		if !ok || !isNumber || n < 0 || n > 30 {
			return nil, 0, "ROUND takes a number of digits from 0 to 30 to be combined"
		}
		digits, operands = int(n), operands[:1]
	}
	parts, why := each(operands, func(e sqlparse.Expr) (merge.Expr, string) {
		made, of, why := c.number(e)
		kind = c.wider(kind, of)
		return made, why
	})
	switch {
	case why != "":
		return nil, 0, why
	case name == "round" && len(parts) == 1:
		return merge.Round(c.dialect, parts[0], digits), kind, ""
	case name == "nullif":
		return merge.NullIf(c.dialect, parts[0], parts[1]), kind, ""
	case name == "round":
		return nil, 0, onlyNumbers
	}
	c.of.group.zero = true
	return merge.Coalesce(parts...), kind, ""
}
