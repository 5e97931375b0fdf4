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

// rivals are two texts of a List that the column takes for equal, and that lie on
// different shards.
type rivals struct {
	asked bool // the server was
	a, b  string
}

// readRivals asks the server under whose collation listed texts are compared. Texts
// that are not listed cost nothing: the rule refuses them.
func readRivals(ctx context.Context, db dialect.Querier, d dialect.Dialect, physical string, j judge) (rivals, error) {
	slots := sharding.Listed(j.rule)
	if len(slots) == 0 || len(slots) > dialect.MaxEqual {
		return rivals{}, nil
	}
	// In the order of slots, the first and the last of texts that are equal have one
	// slot only if all have it.
	texts := slices.SortedFunc(maps.Keys(slots), func(a, b string) int {
		return cmp.Or(cmp.Compare(slots[a], slots[b]), strings.Compare(a, b))
	})
	pairs, err := dialect.EqualTexts(ctx, db, d, physical, j.name, j.column, texts)
	for _, pair := range pairs {
		if a, b := texts[pair[0]], texts[pair[1]]; slots[a] != slots[b] {
			return rivals{true, a, b}, err
		}
	}
	return rivals{asked: true}, err
}

func (r rivals) faults(j judge) []Fault {
	if r.a == r.b {
		return nil
	}
	return []Fault{{
		Column: j.name, Severity: Error, Collation: true,
		Message: fmt.Sprintf("%s is compared by a collation, %s, under which '%s' and '%s' are equal, and the rule has them in different shards", j.name, j.column.Collation, r.a, r.b),
		Fix:     "list both in one slot, or give the column a binary collation (utf8mb4_bin; BINARY in SQLite)",
	}}
}

// numbered judges listed texts that are numbers and no members of an ENUM.
func (j judge) numbered() []Fault {
	for _, text := range slices.Sorted(maps.Keys(sharding.Listed(j.rule))) {
		if _, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && !strings.Contains(j.column.Type, "'"+text+"'") {
			return j.fault(Error, fmt.Sprintf("'%s' is no member, and is stored as the member of that place, whose rows may lie on other shards", text),
				"make it VARCHAR, or list the members alone")
		}
	}
	return nil
}
