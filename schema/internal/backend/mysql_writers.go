// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Writers says how rows may change that no trigger notes or no lock holds.
type Writers struct {
	Kind         WriterKind
	Message, Fix string
}

// WriterKind is a kind of others who change rows.
type WriterKind int

// The kinds.
const (
	InCluster  WriterKind = iota + 1 // members of a cluster, which a lock does not hold
	Replicated                       // another server, whose rows run no triggers
	NotShown                         // whether there are some is not shown to the user
)

// OtherWriters finds how rows may change that no trigger notes or no lock holds. It
// leaves the severity to whoever asks.
func (m mysqlExclusion) OtherWriters(ctx context.Context, s *Session) ([]Writers, error) {
	if m.found.Cluster != dialect.NoCluster {
		return []Writers{{InCluster, fmt.Sprintf("the server is a member of a cluster (%s), where a lock on tables holds the writers of this member alone", m.found.Cluster),
			"move the tables from a server that is in none"}}, nil
	}
	appliers, err := dialect.Appliers(ctx, s, m.found)
	if errors.Is(err, dialect.ErrNotPermitted) {
		return []Writers{{NotShown, "whether the server repeats another one is not shown to the user", "GRANT " + m.seeAppliers() + " to it"}}, nil
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
	return []Writers{{Replicated, "the server is configured to repeat " + strings.Join(from, ", ") + ", whether it does so now or not: rows that come that way run no triggers, so that their changes are lost", fix}}, nil
}

// seeAppliers is the right to see how a server is configured to repeat others.
func (m mysqlExclusion) seeAppliers() string {
	if m.found.Kind == dialect.KindMariaDB {
		return "SLAVE MONITOR ON *.*"
	}
	return "SELECT ON performance_schema.replication_connection_configuration"
}

// OtherWriters: a file has no other writers than its own.
func (sqliteExclusion) OtherWriters(context.Context, *Session) ([]Writers, error) { return nil, nil }
