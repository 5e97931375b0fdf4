// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"

	"github.com/shardid/shardid/keygen"
)

var cosID = &counterTable{
	kind: cosIDKind, name: "cosid", key: "name", value: "last_max_id", next: 1,
	also: map[string]string{
		mysqlName:    `, "last_fetch_time" = UNIX_TIMESTAMP()`,
		postgresName: `, "last_fetch_time" = CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) AS bigint)`,
		sqliteName:   `, "last_fetch_time" = CAST(strftime('%s', 'now') AS INTEGER)`,
	},
	seed: "insert it with the highest id in use, as CosId's JdbcIdSegmentInitializer does",
}

// CosID returns the source of one row of CosId's table cosid, for package segment. Name is the
// row's name with its namespace: "shop.order". CosId may reserve from the same row at any time,
// because the ranges have CosId's form, (old last_max_id, new last_max_id]. The row has no
// step, so segment's Config decides on it. The row must exist. What [TinyID] says of a database
// that lost its newest rows applies here, too.
func (s *Store) CosID(name string) keygen.Source { return withoutStep{newTag(s, cosID, name)} }

// withoutStep is a counter whose row has no step.
type withoutStep struct{ tag *tag }

func (w withoutStep) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	return w.tag.Reserve(ctx, n)
}
