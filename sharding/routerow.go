// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/shardid/shardid/internal/dialect"
)

// Route says which tables serve a logical table that is or was migrated.
type Route string

// The routes.
const (
	// OnSource: the source's own table serves, and there were never any shards.
	OnSource Route = "source"
	// Returned: the source's own table serves, after a rollback has closed the
	// shards. Generators go on making its keys: processes hold ids that they have
	// not given yet, and the source would number up to them.
	Returned Route = "returned"
	// OnShards: the shards serve; the source's table was renamed.
	OnShards Route = "shards"
)

// RouteTable is the table of the source with a row for each table that is
// migrated. Runners of package schema/migrate write it, in the moment of a
// switch and after the old place was closed.
const RouteTable = "shardid_route"

// RouteRow is what the source says about a logical table.
type RouteRow struct {
	Table string // the logical name, in lower case
	Job   string // the migration that the table belongs to; "" when there never was one
	// Epoch rises with each change of Route. A row with a lower epoch than one that
	// was read before comes from a replica that is behind, and must not be followed.
	Epoch int64
	Route Route // OnSource when there is no row
}

// ErrRoute: the route row says something that this version does not know.
// Returned by ReadRoute.
var ErrRoute = errors.New("sharding: unknown route; use the version that the migration was run with")

// RouteQuerier is the part of *sql.DB, *sql.Conn and *sql.Tx that ReadRoute
// needs. In a transaction that has read before, the answer may be as old as its
// snapshot.
type RouteQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ReadRoute reads which tables serve the table called name. source is the
// database that is being migrated, its primary.
//
// It is for a caller whose statement failed because a table is missing, which is
// how both a switch and a rollback close a place: the caller reads the route,
// and sends the statement once more when the route leads elsewhere than it was
// sent. When it leads to the same place, the switch is under way; the caller
// waits a moment and reads again. Only single statements outside of transactions
// may be sent again: of a text with several, a part may have been done.
//
// source is MariaDB, MySQL, PostgreSQL or SQLite. One without the table of routes has no migrations: its rows are OnSource.
func ReadRoute(ctx context.Context, source RouteQuerier, name string) (RouteRow, error) {
	row := RouteRow{Table: fold(name), Route: OnSource}
	if err := dialect.CheckIdent(row.Table); err != nil {
		return row, nil //nolint:nilerr // no job takes such a table
	}
	// A literal, as it is the same for all databases.
	err := source.QueryRowContext(ctx, "SELECT job, epoch, route FROM "+RouteTable+" WHERE LOWER(tbl) = '"+row.Table+"'").Scan(&row.Job, &row.Epoch, &row.Route)
	if errors.Is(err, sql.ErrNoRows) || dialect.FaultOf(err) == dialect.NoTable {
		return row, nil
	}
	if err != nil {
		return RouteRow{}, fmt.Errorf("sharding: read the route of %s: %w", row.Table, err)
	}
	if err := row.check(); err != nil {
		return RouteRow{}, err
	}
	return row, nil
}

// isSource reports whether the source's own table serves.
func (r Route) isSource() bool { return r == OnSource || r == Returned }

func (row RouteRow) check() error {
	if row.Route != OnShards && !row.Route.isSource() {
		return fmt.Errorf("%w: table %s: %q", ErrRoute, row.Table, row.Route)
	}
	return nil
}

// readRoutes reads the routes of tables, whose keys are folded names, in one
// statement: those of one job change together.
func readRoutes(ctx context.Context, source *sql.DB, tables map[string]string) (routing, error) {
	all := make(routing, len(tables))
	for name := range tables {
		all[name] = RouteRow{Table: name, Route: OnSource}
	}
	rows, err := source.QueryContext(ctx, "SELECT LOWER(tbl), job, epoch, route FROM "+RouteTable)
	if dialect.FaultOf(err) == dialect.NoTable {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sharding: read the routes: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var row RouteRow
		if err := rows.Scan(&row.Table, &row.Job, &row.Epoch, &row.Route); err != nil {
			return nil, fmt.Errorf("sharding: read the routes: %w", err)
		}
		if _, asked := tables[row.Table]; !asked {
			continue
		}
		if err := row.check(); err != nil {
			return nil, err
		}
		all[row.Table] = row
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sharding: read the routes: %w", err)
	}
	return all, nil
}
