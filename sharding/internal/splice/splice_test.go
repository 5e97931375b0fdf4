// SPDX-License-Identifier: Apache-2.0

package splice_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding/internal/splice"
)

func TestPartsOfATextAreReplacedAndParametersNumberedAgain(t *testing.T) {
	for _, c := range []struct {
		family     sqlparse.Family
		text       string
		part, with string
		copies     []int
		want       string
		args       []int
	}{
		{sqlparse.MySQL, "SELECT a FROM t WHERE b = ? AND c = ? LIMIT ?", "b = ? AND ", "", nil, "SELECT a FROM t WHERE c = ? LIMIT ?", []int{1, 2}},
		{sqlparse.MySQL, "SELECT a FROM t WHERE b = ? LIMIT ?", "a", "a, d + ?", []int{0}, "SELECT a, d + ? FROM t WHERE b = ? LIMIT ?", []int{0, 0, 1}},
		{sqlparse.PostgreSQL, "SELECT a FROM t WHERE b = $1 AND c = $2 LIMIT $3", "b = $1 AND ", "", nil, "SELECT a FROM t WHERE c = $1 LIMIT $2", []int{1, 2}},
		{sqlparse.PostgreSQL, "SELECT a FROM t WHERE b = $2 LIMIT $1", " LIMIT $1", "", nil, "SELECT a FROM t WHERE b = $1", []int{1}},
		{sqlparse.SQLite, "SELECT '?1' FROM t WHERE b = ?3 AND c = ?1", "b = ?3", "b IN (?3, ?1)", []int{2, 0}, "SELECT '?1' FROM t WHERE b IN (?2, ?1) AND c = ?1", []int{0, 2}},
		{sqlparse.PostgreSQL, "SELECT a FROM t", "a", "b", nil, "SELECT b FROM t", nil},
	} {
		dialect := sqlparse.Dialect{Family: c.family}
		p := sqlparse.Parse(c.text, dialect)
		at := strings.Index(c.text, c.part)
		edits := []splice.Edit{{Span: sqlparse.Span{From: at, To: at + len(c.part)}, With: c.with, Args: c.copies}}
		args, numbers := splice.Around(p, edits)
		if got := splice.Written(p, edits, numbers, dialect.Rules()); got != c.want || !slices.Equal(args, c.args) {
			t.Errorf("%s: %s %v, want %s %v", c.text, got, args, c.want, c.args)
		}
	}
}

var number = regexp.MustCompile(`\$(\d+)`)

// A database counts the arguments of a text: each number up to the largest must occur in it.
func TestATextHasTheArgumentsOfItsParametersWhateverIsLeftOut(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	dialect := sqlparse.Dialect{Family: sqlparse.PostgreSQL}
	for range 2000 {
		var conditions []string
		for range 1 + r.IntN(6) {
			conditions = append(conditions, fmt.Sprintf("c%d = $%d", r.IntN(3), 1+r.IntN(5)))
		}
		text := "SELECT a FROM t WHERE " + strings.Join(conditions, " AND ")
		p := sqlparse.Parse(text, dialect)
		var edits []splice.Edit
		left := slices.Clone(conditions)
		at := len("SELECT a FROM t WHERE ")
		for i, c := range conditions {
			if r.IntN(2) == 0 {
				edits = append(edits, splice.Edit{Span: sqlparse.Span{From: at, To: at + len(c)}, With: "TRUE"})
				left[i] = "TRUE"
			}
			at += len(c) + len(" AND ")
		}
		r.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
		args, numbers := splice.Around(p, edits)
		got := splice.Written(p, edits, numbers, dialect.Rules())
		// With the numbers of the original, the text must be the one that was wanted.
		used := map[int]bool{}
		back := number.ReplaceAllStringFunc(got, func(of string) string {
			n, _ := strconv.Atoi(of[1:])
			used[n] = true
			return "$" + strconv.Itoa(args[n-1]+1)
		})
		if want := "SELECT a FROM t WHERE " + strings.Join(left, " AND "); back != want || len(used) != len(args) {
			t.Fatalf("%s without %v: %s with the arguments %v", text, edits, got, args)
		}
	}
}
