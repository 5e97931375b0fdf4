package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Rows that a server repeats from another one run no triggers when they come as row
// events: nobody notes that they changed. In a cluster, a lock on tables holds the
// writers of one member alone.

// elsewhere finds how rows may change that no trigger notes or no lock holds. It
// leaves the severity to whoever asks.
func (m mysqlSeam) elsewhere(ctx context.Context, s *session) ([]Finding, error) {
	if m.found.Cluster != dialect.NoCluster {
		return []Finding{{Code: InCluster, Message: fmt.Sprintf("the server is a member of a cluster (%s), where a lock on tables holds the writers of this member alone", m.found.Cluster),
			Fix: "move the tables from a server that is in none"}}, nil
	}
	appliers, err := dialect.Appliers(ctx, s, m.found)
	if errors.Is(err, dialect.ErrNotPermitted) {
		return []Finding{{Code: Privileges, Message: "whether the server repeats another one is not shown to the user", Fix: "GRANT " + m.seeAppliers() + " to it"}}, nil
	}
	if err != nil {
		return nil, err
	}
	var from []string
	for _, a := range appliers {
		if !a.Triggers {
			from = append(from, strings.TrimSpace(a.From+" "+a.Channel))
		}
	}
	if len(from) == 0 {
		return nil, nil
	}
	fix := "have all write to this server, then STOP REPLICA and RESET REPLICA ALL, of each channel"
	if m.found.Kind == dialect.KindMariaDB {
		fix = "have all write to this server, then STOP ALL SLAVES and RESET SLAVE ALL, of each connection; or have triggers run: SET GLOBAL slave_run_triggers_for_rbr = YES"
	}
	return []Finding{{Code: Replica, Message: "the server is configured to repeat " + strings.Join(from, ", ") + ", whether it does so now or not: rows that come that way run no triggers, so that their changes are lost", Fix: fix}}, nil
}

// seeAppliers is the right to see how a server is configured to repeat others.
func (m mysqlSeam) seeAppliers() string {
	if m.found.Kind == dialect.KindMariaDB {
		return "SLAVE MONITOR ON *.*"
	}
	return "SELECT ON performance_schema.replication_connection_configuration"
}

// elsewhere: a file has no other writers than its own.
func (sqliteSeam) elsewhere(context.Context, *session) ([]Finding, error) { return nil, nil }

// checkWriters fails when rows of the source may change elsewhere.
func (c *session) checkWriters(ctx context.Context) error {
	return c.refuse(ctx, InCluster, Replica, Privileges)
}

// checkShards fails when rows of the shards may have come from other servers, which a
// rollback would lose. Members of clusters note what they change; that their writers
// are no longer at work when the shards are closed, Inspect says.
func (l *lead) checkShards(ctx context.Context) error {
	return l.eachSide(ctx, func(ctx context.Context, side *side, _ []*target) error {
		return side.do(ctx, func(s *session) error { return s.refuse(ctx, Replica, Privileges) })
	})
}

// refuse fails when one of the codes was found.
func (c *session) refuse(ctx context.Context, codes ...Code) error {
	found, err := c.side.elsewhere(ctx, c)
	if err != nil {
		return err
	}
	for _, f := range found {
		cause := ErrNotReady
		if f.Code == InCluster {
			cause = ErrUnsupported
		}
		if slices.Contains(codes, f.Code) {
			return fmt.Errorf("%w: %s: %s", cause, f.Message, f.Fix)
		}
	}
	return nil
}
