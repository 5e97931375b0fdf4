// SPDX-License-Identifier: Apache-2.0

package sqlparse

import (
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
)

// castType reads the type after ::.
func (p *nameReader) castType() {
	if !p.accept("double", "precision") && !p.accept("character", "varying") && !p.accept("bit", "varying") {
		p.name()
	}
	if p.at("(") {
		p.skipParens()
	}
	if p.accept("with") || p.accept("without") {
		p.expect("time", "zone")
	}
	for p.accept("[") {
		if p.tok.kind == sqltext.Number {
			p.next()
		}
		p.expect("]")
	}
}

// keeps reports whether a cast of x to a type does not change values of this type: it is one of whole
// numbers, uuid, or text without a length. The text of another cast may differ from what that cast was
// given: '05'::int::text is '5'. So a column of texts stores another text than that of the value: respells.
func keeps(typ string, x Expr) (is, respells bool) {
	switch strings.ToLower(strings.TrimSpace(typ)) {
	case "bigint", "int8", "integer", "int", "int4", "smallint", "int2", "uuid":
		return true, true
	case "text", "varchar":
		return As(Bare(x), Cast) == nil, false
	}
	return false, false
}

// takeKeeping sets what is known of a cast to a type.
func takeKeeping(p *operandReader, cast *Operation, typ string) {
	cast.Keeps, cast.Respells = keeps(typ, cast.Operands[0])
	isText := cast.Keeps && !cast.Respells
	if element, ok := strings.CutSuffix(strings.TrimSpace(typ), "[]"); ok && !cast.Keeps {
		var respells bool
		cast.Elements, respells = keeps(element, cast.Operands[0])
		isText = cast.Elements && !respells
	}
	if isText && Is[*Param](Bare(cast.Operands[0])) {
		p.texts = append(p.texts, cast)
	}
}

// takeShared finds the casts to text of parameters that are used in another way, too. PostgreSQL may give such a parameter another
// type, from which the cast makes another text: '05' is 5 for $1::bigint, and $1::text is then '5'.
func takeShared(texts []*Operation, params []*Param) {
	other := map[int]int{} // the uses of each parameter, less the casts to text
	for _, p := range params {
		other[p.Index]++
	}
	index := func(cast *Operation) int {
		p, _ := Bare(cast.Operands[0]).(*Param)
		return p.Index
	}
	for _, cast := range texts {
		other[index(cast)]--
	}
	for _, cast := range texts {
		if other[index(cast)] > 0 {
			cast.Keeps, cast.Elements = false, false
		}
	}
}

// postgresOperator returns the length of the operator at the start of text: all operator characters
// up to a comment. A sign at the end belongs to it only after a character that no operator of the
// SQL standard has.
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

// unicodeName returns the value of a name with \0065 and \+000065 for its letters.
func unicodeName(name string) string {
	var out strings.Builder
	for i := 0; i < len(name); {
		from, digits := i+1, 4
		if strings.HasPrefix(name[i:], `\+`) {
			from, digits = i+2, 6
		}
		if name[i] == '\\' && from+digits <= len(name) {
			if r, err := strconv.ParseInt(name[from:from+digits], 16, 32); err == nil {
				out.WriteRune(rune(r))
				i = from + digits
				continue
			}
		}
		out.WriteByte(name[i])
		i++
	}
	return out.String()
}
