// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"slices"
	"strings"
	"testing"
)

// rowOf is a row of these values.
func rowOf(values ...string) (r Row) {
	for _, v := range values {
		r.Text += v
		r.Ends = append(r.Ends, len(r.Text))
	}
	return r
}

func TestABatchHasANumberOfRowsForWhichThereIsAStatement(t *testing.T) {
	narrow, wide := rowOf("1", "b"), rowOf("1", strings.Repeat("b", 100_000))
	many := rowOf(slices.Repeat([]string{"1"}, 500)...)
	for name, is := range map[string]struct {
		row        Row
		rows, want int
	}{
		"none": {narrow, 0, 0}, "one": {narrow, 1, 1}, "three": {narrow, 3, 2}, "some": {narrow, 255, 128}, "all": {narrow, 256, 256}, "more": {narrow, 4000, 256},
		"of many bytes": {wide, 100, 2}, "of many values": {many, 100, 4},
	} {
		if got := (mySQL{}).Batch(slices.Repeat([]Row{is.row}, is.rows)); got != is.want {
			t.Errorf("%s: a batch of %d rows, not %d", name, got, is.want)
		}
	}
}

func TestAnArrayOfPostgreSQLHasOneElementForEachRow(t *testing.T) {
	null := Row{Ends: []int{^0}}
	for want, rows := range map[string][]Row{
		`{"1"}`:                        {rowOf("1")},
		`{"",NULL,"NULL"}`:             {rowOf(""), null, rowOf("NULL")},
		`{"{1,2}","a, b"}`:             {rowOf("{1,2}"), rowOf("a, b")},
		`{"\\","\"","a\"b\\c"," é\n"}`: {rowOf(`\`), rowOf(`"`), rowOf(`a"b\c`), rowOf(" é\n")},
	} {
		if got := arrayOf(rows, 0); got != strings.ReplaceAll(want, `\n`, "\n") {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
