// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"database/sql"
	"time"

	"github.com/shardid/shardid/internal/dialect"
)

// place is the name of the last setting, which says where a database is. Unlike the others it must differ.
const place = "the place"

// Place returns where the server's database is, "" if that is not known. Pools of one database have the same place.
// On MySQL and MariaDB so may others, because servers in containers may share a host name: see [Server.Shares].
func (s *Server) Place() string { return s.values[len(s.values)-1] }

// Shares reports whether a session and a pool whose places are the same have one database. On MySQL and MariaDB the
// session takes a lock of a random name, and the pool is asked who has it. A server that has no such locks counts as
// another one. The error is that of a pool that has no connection for a second.
func (s *Server) Shares(ctx context.Context, one dialect.Querier, other *sql.DB) (shared bool, err error) {
	if s.Name() != "mysql" {
		return true, nil
	}
	lock := "'shardid:" + rand.Text() + "'"
	var got sql.NullBool
	var own, holder sql.NullInt64
	if one.QueryRowContext(ctx, "SELECT GET_LOCK("+lock+", 0), CONNECTION_ID()").Scan(&got, &own) != nil {
		return false, nil
	}
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if asked := other.QueryRowContext(limited, "SELECT IS_USED_LOCK("+lock+")").Scan(&holder); limited.Err() != nil {
		err = asked
	}
	_ = one.QueryRowContext(context.WithoutCancel(ctx), "SELECT RELEASE_LOCK("+lock+")").Scan(&got) // it ends with its session otherwise
	return holder.Valid && holder == own, err
}
