// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"cmp"
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

// sameServer is the condition that the server is the stored one, and that the row stores that
// numbers are reserved width at a time.
func sameServer(server dialect.Server, width int64) string {
	same := fmt.Sprintf(` AND EXISTS (SELECT 1 FROM "worker_namespace" WHERE "namespace" = '%s' AND "longest_us" >= %d AND "identity" IN (%s))`, segmentsRow, width, identities(server))
	if server.Name() == mysqlName {
		same += ` AND @@binlog_format <> 'STATEMENT'`
	}
	return same
}

// raiseSteps is the number of steps by which counters are raised. A step should last for ten
// minutes, so ten steps last longer than a replica may lag. Package segment reserves several
// steps at a time where one lasts less. So a larger number that was reserved at a time counts
// as the step.
const raiseSteps = 10

// raiseCounters returns the statement that raises all counters. It sets a counter that is too
// close to its end to the end, so that no id of it is issued.
func raiseCounters(most, largest int64) string {
	by := fmt.Sprintf(`%d * (CASE WHEN "step" > %[2]d THEN "step" ELSE %[2]d END)`, raiseSteps, min(largest, most/raiseSteps))
	return fmt.Sprintf(`UPDATE "leaf_alloc" SET "max_id" = CASE WHEN "max_id" <= %[1]d - %[2]s THEN "max_id" + %[2]s ELSE %[1]d END`, most, by)
}

// admit prepares the guard for reservations of width numbers. It raises all counters when the
// server is not the stored one, and stores it, in one transaction. A process that waited for
// another's change finds it done. The width is stored before the first reservation of it, so a
// replica that has the reservation before knows it, too. Most is the highest number that max_id
// can hold.
func (s session) admit(ctx context.Context, width, most int64) error {
	if err := s.addGuard(ctx, segmentsRow); err != nil {
		return err
	}
	return s.inTx(ctx, func() error {
		g, err := s.guard(ctx, segmentsRow)
		if err != nil || g.other == "" && width <= g.largest {
			return err
		}
		g.largest = max(g.largest, width)
		if g.other != "" {
			if err := s.exec(ctx, raiseCounters(most, g.largest)); err != nil {
				return err
			}
		}
		return s.note(ctx, segmentsRow, g)
	})
}

// addGuard creates a row of worker_namespace that stores a server, none at first.
func (s session) addGuard(ctx context.Context, row string) error {
	return s.make(ctx, &statement{addNamespace, []any{row, 0, 0, "", 0, 0}})
}

// guard is a row of worker_namespace that stores a server.
type guard struct {
	noted   string // the identity that is stored, "" for none
	other   string // the identity of this server if it is another one
	largest int64  // how many numbers were reserved at a time at most; in the column longest_us
}

const (
	readGuard = `SELECT "identity", "longest_us" FROM "worker_namespace" WHERE "namespace" = ?`
	noteGuard = `UPDATE "worker_namespace" SET "identity" = ?, "longest_us" = ? WHERE "namespace" = ?`
)

// guard locks the row, which must exist.
func (s session) guard(ctx context.Context, row string) (g guard, err error) {
	p, err := s.present(ctx)
	if err != nil {
		return g, err
	}
	if err := s.row(ctx, readGuard+forUpdate(s.server), row).Scan(&g.noted, &g.largest); err != nil || g.noted == p.identity || g.noted == p.node {
		return g, err
	}
	g.other = p.identity
	return g, s.confirm(ctx)
}

// note stores this server in the row.
func (s session) note(ctx context.Context, row string, g guard) error {
	return s.exec(ctx, noteGuard, cmp.Or(g.other, g.noted), g.largest, row)
}
