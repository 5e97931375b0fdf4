// SPDX-License-Identifier: Apache-2.0

package sqlparse

import "strings"

// class is the set of special meanings of a word, in at least one of the dialects. If dialects
// differ, a statement that uses the word as a name is Unknown rather than misread.
type class uint16

const (
	reserved  class = 1 << iota // not a name, unless it is quoted or after a dot
	callable                    // a function before a parenthesis, although it is reserved
	bound                       // not an alias without AS
	infix                       // continues the expression before it
	constant                    // a value
	clock                       // CURRENT_TIMESTAMP and similar words: a function without parentheses
	modifier                    // MySQL's words after SELECT
	unit                        // a unit of MySQL's INTERVAL
	priority                    // MySQL's words after the verb of a write
	pattern                     // compares a text with a pattern
	onlyMySQL                   // an operator only in MySQL
	ending                      // ends an expression
	noPrefix                    // an operator with which no operand begins
)

func (c class) is(other class) bool { return c&other != 0 }

// classes are the words and the operators of each class.
var classes = map[class]string{
	reserved: `all and as asc between by case collate cross default delete desc distinct else except exists false for
		from group having in inner insert intersect into is join left like limit natural not null on or order replace
		right select set straight_join table then true union update using values when where with`,
	callable: `all default insert left like replace right values`,
	bound: `against at div do end escape fetch force full glob ignore ilike indexed isnull lateral lock match member
		minus mod notnull nulls offset operator outer overlaps overriding partition procedure regexp returning rlike
		rows separator similar sounds tablesample use window xor`,
	infix: `at between collate div escape glob ilike in is isnull like match member mod not notnull operator overlaps
		regexp rlike similar sounds`,
	constant: `default false null true current_timestamp`,
	clock: `current_timestamp current_date current_time current_user current_role current_catalog current_schema
		localtime localtimestamp session_user system_user utc_date utc_time utc_timestamp`,
	modifier: `straight_join high_priority sql_small_result sql_big_result sql_buffer_result sql_no_cache sql_cache
		sql_calc_found_rows`,
	unit: `microsecond second minute hour day week month quarter year second_microsecond minute_microsecond
		minute_second hour_microsecond hour_second hour_minute day_microsecond day_second day_minute day_hour year_month`,
	priority:  `low_priority high_priority delayed`,
	pattern:   `like ilike regexp rlike glob match`,
	onlyMySQL: `xor && ||`,
	ending:    `( ) , ; .`,
	noPrefix:  `) , ; * / % || && [ :: := = == <> != < <= > >= <=>`,
	0: `analyze array asymmetric binary bit cast character conflict constraint convert cube date delayed describe
		distinctrow double duplicate explain extended filter first format grouping history index interval key
		last listen local locked low_priority materialized mode next no nothing notify nowait of only ordinality over partitions plan
		precision query quick recursive respect rollup row sets share skip symmetric ties time timestamp to unknown unlisten
		value varying verbose wait within without zone`,
}

// operators are the operators that the grammar knows, longer ones first.
const operators = "<=> ->> <= >= <> != == || && << >> -> :: := ( ) , ; . * + - / % [ ] = < >"

// grammar are the operators whose precedence is known.
var grammar = map[string]Operator{
	"or": Or, "||": Or, "xor": Xor, "and": And, "&&": And,
	"=": Equal, "==": Equal, "<>": NotEqual, "!=": NotEqual, "<": Less, "<=": LessEqual, ">": Greater, ">=": GreaterEqual, "<=>": NullSafeEqual,
	"+": Add, "-": Sub, "*": Mul, "/": Div, "%": Mod,
}

// wordID is the index of a word or an operator in the table of those that the grammar knows. 0
// means none.
type wordID uint16

const places = 1 << 10

type known struct {
	text     string
	class    class
	operator Operator
}

var (
	words   [places]known
	longest = learn()
)

// learn fills the table and returns the length of the longest word.
func learn() (length int) {
	note := func(word string) *known {
		length = max(length, len(word))
		entry := &words[find([]byte(word))]
		entry.text = word
		return entry
	}
	for c, list := range classes {
		for word := range strings.FieldsSeq(list) {
			note(word).class |= c
		}
	}
	for symbol := range strings.FieldsSeq(operators) {
		note(symbol)
	}
	for word, meaning := range grammar {
		note(word).operator = meaning
	}
	return length
}

// find returns the index of a word in lower case, or a free one for it: words with the same hash
// follow each other.
func find(word []byte) wordID {
	n := len(word)
	at := (uint(word[0])*37+uint(word[n-1])*11+uint(word[n/2])*97+uint(n)*59)%(places-1) + 1
	for words[at].text != "" && words[at].text != string(word) {
		at = at%(places-1) + 1
	}
	return wordID(at)
}

// idOf returns the wordID of a word in any case, or of an operator.
func idOf(text string) wordID {
	var lower [24]byte
	if len(text) > longest {
		return 0
	}
	for i := range len(text) {
		c := text[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return find(lower[:len(text)])
}

// operatorLength returns the length of the operator at the start of text, which starts with an Op
// token. MySQL and SQLite lack some operators, and report an error.
func (p *cursor) operatorLength(text string) int {
	switch {
	case strings.HasPrefix(text, "::"), strings.HasPrefix(text, ":="):
		return 2
	case strings.IndexByte("(),;.[]{}:", text[0]) >= 0:
		return 1
	case p.d.Family == PostgreSQL:
		return postgresOperator(text)
	case len(text) > 1 && strings.IndexByte("=>|&<", text[1]) >= 0:
		for op := range strings.FieldsSeq(operators) {
			if strings.HasPrefix(text, op) {
				return len(op)
			}
		}
	}
	return 1
}
