// SPDX-License-Identifier: Apache-2.0

package splice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqlparse"
)

// Edit is a part of the text that is replaced.
type Edit struct {
	sqlparse.Span

	With string
	Args []int // the arguments of the parameters that it copies; a parameter without a number takes the argument of its position

	Copied []sqlparse.Span // the subqueries whose texts it copies: their tables have other names on each target
}

// Insert returns the edit that adds a text at an offset.
func Insert(at int, text string) Edit {
	return Edit{Span: sqlparse.Span{From: at, To: at}, With: text}
}

// inText compares the places of edits in the text. What is inserted precedes what is replaced there.
func inText(a, b Edit) int { return cmp.Or(a.From-b.From, a.To-b.To) }

// Replaced returns a part of the text with the edits that lie in it.
func Replaced(text string, part sqlparse.Span, edits []Edit) string {
	var out strings.Builder
	end := part.From
	for _, e := range slices.SortedStableFunc(slices.Values(edits), inText) {
		if e.Span.In(part) {
			out.WriteString(text[end:e.From] + e.With)
			end = e.To
		}
	}
	return out.String() + text[end:part.To]
}
