// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// needs refuses features that a server does not support, before anything is written. All
// servers of a TiDB cluster share one state, so a fail-over loses nothing that TiDB has
// acknowledged. But no variable of TiDB distinguishes that state from a restored one, it
// returns binlog_format=STATEMENT whatever is set, and it ignores SKIP LOCKED, so that
// processes which take leases would lock the same row and fail at COMMIT.
func needs(server dialect.Server, what, instead string) error {
	if server.Kind != dialect.KindTiDB {
		return nil
	}
	return &keygen.SetupError{
		Err:  fmt.Errorf("%s needs a server that has an identity and supports SKIP LOCKED; this is TiDB (%s), which has neither", what, server.Version),
		Cure: instead,
	}
}

// These are the alternatives on TiDB.
const (
	plainTags  = "use Tag: TiDB keeps what it has acknowledged when one of its servers fails; after a restore raise max_id above every id in use"
	plainNodes = "use WorkerNode: TiDB keeps what it has acknowledged when one of its servers fails; after a restore raise AUTO_INCREMENT above every id in use"
	noLeases   = "use WorkerNode, or keep the leases in another database, in Redis or in ZooKeeper"
)
