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

// CosID returns the source of one row of CosId's table cosid, as it is, for package
// segment. Name is the row's, with the namespace in front: "shop.order". CosId may
// reserve from the same row at any time: ranges are its own, (old last_max_id, new
// last_max_id]. The row has no step, so that of segment's Config is used. The row must
// exist. Of a database that forgot its newest rows the same holds as for [TinyID].
func (s *Store) CosID(name string) keygen.Source { return withoutStep{newTag(s, cosID, name)} }

// withoutStep is a counter whose row says nothing of how many ids are wanted.
type withoutStep struct{ tag *tag }

func (w withoutStep) Reserve(ctx context.Context, n int64) (keygen.Span, error) {
	return w.tag.Reserve(ctx, n)
}
