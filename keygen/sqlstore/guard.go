// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
)

// segmentsRow is the row of worker_namespace that stores the server on which segments are
// reserved. No lease can have this namespace.
const segmentsRow = "leaf_alloc"

// identities are the identities under which a server may be stored. Releases that did not
// detect clusters stored the member's.
func identities(server dialect.Server) string {
	if server.Cluster == dialect.NoCluster {
		return server.IdentityExpr()
	}
	return server.IdentityExpr() + ", " + server.NodeExpr()
}

// sameServer is the condition that the server is the stored one.
func sameServer(server dialect.Server) string {
	same := ` AND EXISTS (SELECT 1 FROM "worker_namespace" WHERE "namespace" = '` + segmentsRow + `' AND "identity" IN (` + identities(server) + `))`
	if server.Name() == mysqlName {
		same += ` AND @@binlog_format <> 'STATEMENT'`
	}
	return same
}

// raiseSteps is the number of steps by which counters are raised. A step should last for ten
// minutes, so ten steps last longer than a replica may lag.
const raiseSteps = 10

// raiseCounters returns the statement that raises all counters. It sets a counter that is too
// close to its end to the end, so that no id of it is issued.
func raiseCounters(most int64) string {
	return fmt.Sprintf(`UPDATE "leaf_alloc" SET "max_id" = CASE WHEN "max_id" <= %[1]d - %[2]d * "step" THEN "max_id" + %[2]d * "step" ELSE %[1]d END`, most, raiseSteps)
}

// raiseAllCounters raises all counters when the server is not the stored one, and stores it, in
// one transaction. A process that waited for another's change finds it done. Most is the
// highest number that max_id can hold.
func (s session) raiseAllCounters(ctx context.Context, most int64) error {
	if err := s.addGuard(ctx, segmentsRow); err != nil {
		return err
	}
	return s.inTx(ctx, func() error {
		other, _, err := s.guard(ctx, segmentsRow)
		if err != nil || other == "" {
			return err
		}
		if err := s.exec(ctx, raiseCounters(most)); err != nil {
			return err
		}
		return s.noteServer(ctx, segmentsRow, other)
	})
}

// addGuard creates a row of worker_namespace that stores a server, none at first.
func (s session) addGuard(ctx context.Context, row string) error {
	return s.make(ctx, &statement{addNamespace, []any{row, 0, 0, "", 0, 0}})
}

const (
	readGuard = `SELECT "identity" FROM "worker_namespace" WHERE "namespace" = ?`
	noteGuard = `UPDATE "worker_namespace" SET "identity" = ? WHERE "namespace" = ?`
)

// guard locks the row. It returns the server's identity if the row stores another one, and
// whether the row stores one at all. The row must exist.
func (s session) guard(ctx context.Context, row string) (other string, noted bool, err error) {
	p, err := s.present(ctx)
	if err != nil {
		return "", false, err
	}
	var known string
	if err := s.row(ctx, readGuard+forUpdate(s.server), row).Scan(&known); err != nil || known == p.identity || known == p.node {
		return "", true, err
	}
	return p.identity, known != "", s.confirm(ctx)
}

// noteServer stores a server in the row.
func (s session) noteServer(ctx context.Context, row, identity string) error {
	return s.exec(ctx, noteGuard, identity, row)
}
