// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// Citus returns the statements that distribute the router's tables in Citus (citus.sql). Run them
// on the coordinator after the tables were created there under their logical names. Citus hashes
// the sharding key itself, so the rule does not matter. A group becomes a co-location, and
// broadcast tables become reference tables.
//
// A group is refused if only the slot in an id keeps its rows together: Citus would separate them.
func Citus(r *sharding.Router) (Export, error) {
	all := layouts(r)
	leader := map[string]layout{}
	var sql strings.Builder
	var errs []error
	notes := []string{goldenOnly("Citus"), "Citus needs the sharding key in every primary and unique key of a table."}
	for _, l := range all {
		first, follows := leader[l.Group]
		if l.Group == "" || !follows {
			sql.WriteString(distribute(l, "colocate_with => 'none', shard_count => %d", len(l.distinct())))
			leader[l.Group] = l
		} else {
			errs = append(errs, colocatable(first, l))
			sql.WriteString(distribute(l, "colocate_with => %s", literal(first.Name)))
		}
		notes = append(notes, geneNotes(l, "statements with only that column query every shard")...)
	}
	for _, name := range r.Broadcasts() {
		fmt.Fprintf(&sql, "SELECT create_reference_table(%s);\n", literal(name))
	}
	if err := errors.Join(errs...); err != nil {
		return Export{}, err
	}
	return Export{[]File{{"citus.sql", sql.String()}}, notes}, nil
}

func distribute(l layout, how string, args ...any) string {
	return fmt.Sprintf("SELECT create_distributed_table(%s, '%s', %s);\n", literal(l.Name), l.Key, fmt.Sprintf(how, args...))
}

// literal returns the text of a regclass: the name as an identifier.
func literal(table string) string { return "'" + dialect.Postgres{}.Quote(table) + "'" }

// colocatable refuses a table of a group unless its rows belong together by equal sharding keys. An
// id that only carries the slot of another column is not equal to it.
func colocatable(first, l layout) error {
	if first.Key == l.Key || len(first.Also)+len(l.Also) == 0 {
		return nil
	}
	return &RefusedError{
		"citus", l.Name,
		fmt.Sprintf("its rows are with those of %s because of the slot in an id, but Citus compares %s.%s with %[1]s.%[4]s", first.Name, l.Name, l.Key, first.Key),
		fmt.Sprintf("give it a column %s and shard it by that", first.Key),
	}
}
