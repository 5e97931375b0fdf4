package schema

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
)

// collations looks at how the columns that lead to a shard compare texts. A rule of
// texts goes by their bytes, and so knows two keys where the column knows one.
func (p *patient) collations(ctx context.Context, s session) error {
	if p.table == nil {
		return nil
	}
	for _, name := range p.table.Texts() {
		collation, err := dialect.Folding(ctx, s, s, p.facts.name, name)
		if err != nil {
			return err
		}
		if collation != "" {
			p.find(Collation, Warning, fmt.Sprintf("%s is compared by a collation, %s, under which texts are equal that the rule tells apart, and may look for in different shards", name, collation),
				"give the column a binary collation (utf8mb4_bin; BINARY in SQLite), or bring its values into one form before they are stored and looked for")
		}
	}
	return nil
}
