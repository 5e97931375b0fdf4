package schema

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
)

// workerNode warns of worker ids from WORKER_NODE that no guard protects from a
// database that has forgotten some. On SQLite, which no server tells apart from its
// copy, a guard would notice nothing.
func (w *ward) workerNode(ctx context.Context, names []string) {
	node, guards := named(names, "WORKER_NODE"), named(names, "worker_namespace")
	if node == "" {
		return
	}
	var unguarded bool
	err := w.within(ctx, func(ctx context.Context, s session, _ catalog) error {
		unguarded = false
		if s.Name() == "sqlite" {
			return nil
		}
		if err := s.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+s.Quote(node)+")").Scan(&unguarded); err != nil || !unguarded || guards == "" {
			return err
		}
		var noted string
		err := s.QueryRowContext(ctx, "SELECT "+s.Quote("identity")+" FROM "+s.Quote(guards)+" WHERE "+s.Quote("namespace")+" = 'WORKER_NODE'").Scan(&noted)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		unguarded = noted == ""
		return err
	})
	switch {
	case err != nil && ctx.Err() == nil:
		w.find(node, Finding{NotChecked, Warning, "whether its worker ids are guarded cannot be told: " + err.Error(), "grant SELECT on WORKER_NODE and worker_namespace, and look again"})
	case unguarded:
		w.find(node, Finding{
			UnguardedNode, Warning,
			"worker ids come from it without a guard: on a database restored from a backup, or a replica that took over before it had all rows, the ids of the latest starts are given again, and two processes issue equal ids",
			"use sqlstore's GuardedWorkerNode in all processes, which notices another server; until then, and after a restore on the same server, raise AUTO_INCREMENT (the sequence) above every id that was given",
		})
	}
}

// named returns the table of a name as the database spells it, or "".
func named(names []string, name string) string {
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return ""
	}
	return names[i]
}
