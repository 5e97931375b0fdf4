// SPDX-License-Identifier: Apache-2.0

package keycolumn

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// equalTexts are two texts of a List that are equal under the column's collation but belong to
// different shards.
type equalTexts struct {
	asked bool // the server compared the texts
	a, b  string
}

// readEqualTexts finds listed texts that are equal under the column's collation, by asking the
// server. Texts that are not listed do not matter, because the rule refuses them.
func readEqualTexts(ctx context.Context, db dialect.Querier, d dialect.Dialect, physical string, j columnCheck) (equalTexts, error) {
	slots := sharding.Listed(j.rule)
	if len(slots) == 0 || len(slots) > dialect.MaxEqual {
		return equalTexts{}, nil
	}
	// The texts are in the order of slots, so the first and the last of equal texts have the
	// same slot only if all of them have it.
	texts := slices.SortedFunc(maps.Keys(slots), func(a, b string) int {
		return cmp.Or(cmp.Compare(slots[a], slots[b]), strings.Compare(a, b))
	})
	pairs, err := dialect.EqualTexts(ctx, db, d, physical, j.name, j.column, texts)
	for _, pair := range pairs {
		if a, b := texts[pair[0]], texts[pair[1]]; slots[a] != slots[b] {
			return equalTexts{true, a, b}, err
		}
	}
	return equalTexts{asked: true}, err
}

func (r equalTexts) faults(j columnCheck) []Fault {
	if r.a == r.b {
		return nil
	}
	return []Fault{{
		Column: j.name, Severity: Error, Collation: true,
		Message: fmt.Sprintf("%s is a column with the collation %s, under which '%s' and '%s' are equal, but the rule puts them in different shards", j.name, j.column.Collation, r.a, r.b),
		Fix:     "list both in one slot, or " + comparesBytes,
	}}
}

// numbered checks listed texts that are numbers and not members of an ENUM.
func (j columnCheck) numbered() []Fault {
	for _, text := range slices.Sorted(maps.Keys(sharding.Listed(j.rule))) {
		if _, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && !strings.Contains(j.column.Type, "'"+text+"'") {
			return j.fault(Error, fmt.Sprintf("'%s' is no member, and is stored as the member of that position, whose rows may be on other shards", text),
				"change it to VARCHAR, or list only the members")
		}
	}
	return nil
}
