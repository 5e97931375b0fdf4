// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// needs refuses what a server cannot do, before anything is written. TiDB has one state for
// all of its servers, so what it has acknowledged no fail-over takes back; but none of its
// variables tells one such state from a restored one, it says binlog_format=STATEMENT
// whatever is set, and it ignores SKIP LOCKED, so that takers of leases would lock the same
// row and lose at COMMIT.
func needs(server dialect.Server, what, instead string) error {
	if server.Kind != dialect.KindTiDB {
		return nil
	}
	return &keygen.SetupError{
		Err:  fmt.Errorf("%s needs a server that says which one it is and skips locked rows; this is TiDB (%s), which does neither", what, server.Version),
		Cure: instead,
	}
}

// What serves on TiDB.
const (
	plainTags  = "use Tag: TiDB keeps what it has acknowledged when one of its servers fails; after a restore raise max_id above every id in use"
	plainNodes = "use WorkerNode: TiDB keeps what it has acknowledged when one of its servers fails; after a restore raise AUTO_INCREMENT above every id in use"
	noLeases   = "use WorkerNode, or keep the leases in another database, in Redis or in ZooKeeper"
)
