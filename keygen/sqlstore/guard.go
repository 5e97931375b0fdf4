package sqlstore

import (
	"context"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
)

// segmentsRow is the row of worker_namespace that notes the server on which
// segments are reserved. No leases can have this namespace.
const segmentsRow = "leaf_alloc"

// identities are those by which a server may have been noted: releases that know no
// clusters note the member.
func identities(server dialect.Server) string {
	if server.Cluster == dialect.NoCluster {
		return server.IdentityExpr()
	}
	return server.IdentityExpr() + ", " + server.NodeExpr()
}

// sameServer is the condition that the server is the one noted.
func sameServer(server dialect.Server) string {
	same := ` AND EXISTS (SELECT 1 FROM "worker_namespace" WHERE "namespace" = '` + segmentsRow + `' AND "identity" IN (` + identities(server) + `))`
	if server.Name() == mysqlName {
		same += ` AND @@binlog_format <> 'STATEMENT'`
	}
	return same
}

// distance is how many steps counters are raised by. As a step is meant to last
// for ten minutes, ten steps last longer than a replica may be behind.
const distance = 10

// raiseCounters sets a counter that has no room to be raised to its end, so that
// nothing of it is given.
func raiseCounters(most int64) string {
	return fmt.Sprintf(`UPDATE "leaf_alloc" SET "max_id" = CASE WHEN "max_id" <= %[1]d - %[2]d * "step" THEN "max_id" + %[2]d * "step" ELSE %[1]d END`, most, distance)
}

// jump raises all counters when the server is not the one noted, and notes it,
// both or none. Who waited for another's jump finds it done. Most is what max_id
// holds at most.
func (s session) jump(ctx context.Context, most int64) error {
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
		return s.note(ctx, segmentsRow, other)
	})
}

// addGuard makes a row of worker_namespace that notes a server, none at first.
func (s session) addGuard(ctx context.Context, row string) error {
	return s.make(ctx, &statement{addNamespace, []any{row, 0, 0, "", 0, 0}})
}

const (
	readGuard = `SELECT "identity" FROM "worker_namespace" WHERE "namespace" = ?`
	noteGuard = `UPDATE "worker_namespace" SET "identity" = ? WHERE "namespace" = ?`
)

// guard locks the row and returns the server's identity if it is another one than
// the row notes, and whether the row notes one at all. The row must exist.
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

// note makes the row note a server.
func (s session) note(ctx context.Context, row, identity string) error {
	return s.exec(ctx, noteGuard, identity, row)
}
