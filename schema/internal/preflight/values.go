// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/shardid/shardid/schema/internal/backend"
)

// mysqlValues finds values that a copy would change. If there are none, it reads the table
// once.
func (p tableProbe) mysqlValues(ctx context.Context) error {
	var all []backend.Loss
	var selected []string
	key := p.Database.Quote(p.shape.Key)
	for _, c := range p.shape.Columns {
		if l, some := c.Loss(p.Database.Quote(c.Name)); some {
			all = append(all, l)
			selected = append(selected, "MIN(IF("+l.Condition+", "+key+", NULL))")
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := make([]sql.NullInt64, len(all))
	into := make([]any, len(all))
	for i := range first {
		into[i] = &first[i]
	}
	from := " FROM " + p.Database.Quote(p.shape.Name)
	if err := p.QueryRowContext(ctx, "SELECT "+strings.Join(selected, ", ")+from).Scan(into...); err != nil {
		return err
	}
	p.hasRead(p.shape.Name)
	for i, l := range all {
		if !first[i].Valid {
			continue
		}
		n, err := p.Number(ctx, "SELECT COUNT(*)"+from+" WHERE "+l.Condition)
		if err != nil {
			return err
		}
		p.add(LostValue, Block, fmt.Sprintf("%s %s in %s, the first of which is row %d", l.Column, l.Message, rowsOf(n), first[i].Int64), l.Fix)
	}
	return nil
}
