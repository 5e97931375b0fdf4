package sqlparse

import "strings"

// symbol is what an Op token is.
type symbol uint8

const (
	noSymbol symbol = iota
	otherOperator
	leftParen
	rightParen
	comma
	semicolon
	dot
	star // an operator, or all columns
	plus
	minus
	slash
	percent
	pipes      // ||
	ampersands // &&
	cast       // ::
	assign     // :=
	leftBracket
	equal
	notEqual
	less
	lessEqual
	greater
	greaterEqual
	nullSafeEqual
)

// symbols are the operators of one byte.
var symbols = [256]symbol{
	'(': leftParen, ')': rightParen, ',': comma, ';': semicolon, '.': dot, '*': star, '+': plus, '-': minus, '/': slash,
	'%': percent, '[': leftBracket, '=': equal, '<': less, '>': greater,
}

// symbolOf returns the symbol that an operator is.
func symbolOf(operator string) symbol {
	if len(operator) == 1 {
		return max(symbols[operator[0]], otherOperator)
	}
	switch operator {
	case "||":
		return pipes
	case "&&":
		return ampersands
	case "::":
		return cast
	case ":=":
		return assign
	case "==":
		return equal
	case "<>", "!=":
		return notEqual
	case "<=":
		return lessEqual
	case ">=":
		return greaterEqual
	case "<=>":
		return nullSafeEqual
	}
	return otherOperator
}

// joined are the operators of more than one byte of MySQL and SQLite, longer ones
// first. A server that lacks one reports an error.
var joined = []string{"<=>", "->>", "<=", ">=", "<>", "!=", "==", "||", "&&", "<<", ">>", "->"}

// operatorLength returns how many bytes of text, which starts with an Op token,
// are one operator.
func (p *parser) operatorLength(text string) int {
	switch text[0] {
	case '(', ')', ',', ';', '.', '[', ']', '{', '}', ':':
		return 1
	}
	if p.d.Family == PostgreSQL {
		return postgresOperator(text)
	}
	if len(text) < 2 || strings.IndexByte("=>|&<", text[1]) < 0 {
		return 1
	}
	for _, op := range joined {
		if strings.HasPrefix(text, op) {
			return len(op)
		}
	}
	return 1
}

// postgresOperator returns the length of the operator at the start of text: as
// many operator characters as there are, up to a comment, and a sign at the end
// only behind a character that no SQL standard operator has.
func postgresOperator(text string) int {
	n, special := 0, false
	for n < len(text) && strings.IndexByte("+-*/<>=~!@#%^&|`?", text[n]) >= 0 {
		if rest := text[n:]; n > 0 && (strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*")) {
			break
		}
		special = special || strings.IndexByte("~!@#%^&|`?", text[n]) >= 0
		n++
	}
	for !special && n > 1 && (text[n-1] == '+' || text[n-1] == '-') {
		n--
	}
	return max(n, 1)
}

// comparisonOf returns the comparison that a symbol is, or 0.
func comparisonOf(s symbol) Comparison {
	if s < equal || s > nullSafeEqual {
		return 0
	}
	return Comparison(s-equal) + Equal
}
