// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// Writers is a way in which rows may change without triggers or despite locks.
type Writers struct {
	Kind         WriterKind
	Message, Fix string
}

// WriterKind is the kind of such writers.
type WriterKind int

// The kinds.
const (
	InCluster  WriterKind = iota + 1 // members of a cluster, which a lock does not stop
	Replicated                       // another server, whose replicated rows run no triggers
	NotShown                         // the user may not see whether there are any
)

// OtherWriters returns ways in which rows may change without triggers or despite locks. The
// caller decides the severity.
func (m mysqlExclusion) OtherWriters(ctx context.Context, s *Session) ([]Writers, error) {
	if m.found.Cluster != dialect.NoCluster {
		return []Writers{{InCluster, fmt.Sprintf("the server is a member of a cluster (%s), where a lock on tables stops the writers of this member only", m.found.Cluster),
			"migrate from a server outside of any cluster"}}, nil
	}
	appliers, err := dialect.Appliers(ctx, s, m.found)
	if errors.Is(err, dialect.ErrNotPermitted) {
		return []Writers{{NotShown, "the user may not see whether the server replicates from another one", "GRANT " + m.seeAppliers() + " to it"}}, nil
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
	fix := "have all applications write to this server, then STOP REPLICA and RESET REPLICA ALL, of each channel"
	if m.found.Kind == dialect.KindMariaDB {
		fix = "have all applications write to this server, then STOP ALL SLAVES and RESET SLAVE ALL, of each connection; or have triggers run: SET GLOBAL slave_run_triggers_for_rbr = YES"
	}
	return []Writers{{Replicated, "the server is configured to replicate from " + strings.Join(from, ", ") + ", whether it does so now or not: replicated rows run no triggers, so that their changes are lost", fix}}, nil
}

// seeAppliers is the right to see from which servers this one replicates.
func (m mysqlExclusion) seeAppliers() string {
	if m.found.Kind == dialect.KindMariaDB {
		return "SLAVE MONITOR ON *.*"
	}
	return "SELECT ON performance_schema.replication_connection_configuration"
}

// OtherWriters returns nothing: all writers of a file run its triggers and obey its locks.
func (sqliteExclusion) OtherWriters(context.Context, *Session) ([]Writers, error) { return nil, nil }
