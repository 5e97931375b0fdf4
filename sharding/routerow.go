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
	// OnSource: the source's own table serves, and the shards have never served.
	OnSource Route = "source"
	// Returned: the source's own table serves, after a rollback has closed the shards. Generators
	// continue to make its keys, because processes hold ids that they have not used yet, and the
	// source would assign the same numbers.
	Returned Route = "returned"
	// OnShards: the shards serve; the source's table was renamed.
	OnShards Route = "shards"
)

// RouteTable is the table of the source with a row for each migrated table. Runners of package
// schema/migrate write a row during a switch, after the old table was closed.
const RouteTable = "shardid_route"

// RouteRow is the route row of a logical table.
type RouteRow struct {
	Table string // the logical name, in lower case
	Job   string // the migration that the table belongs to; "" if there was none
	// Epoch increases with each change of Route. A row with a lower epoch than one that was read
	// before comes from a replica that lags, and must be ignored.
	Epoch int64
	Route Route // OnSource if there is no row
}

// ErrRoute: the route row has a value that this version does not know. Returned by ReadRoute.
var ErrRoute = errors.New("sharding: unknown route; use the version that the migration was run with")

// RouteQuerier is the part of *sql.DB, *sql.Conn and *sql.Tx that ReadRoute needs. In a transaction
// that has read before, the result may be as old as the transaction's snapshot.
type RouteQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// ReadRoute reads which tables serve the table called name. source is the primary of the database
// that is being migrated.
//
// It is for a caller whose statement failed because a table is missing: a switch and a rollback
// close a table by renaming it. The caller reads the route, and sends the statement again if the
// route differs from the one that it used. If the route is the same, the switch has not finished;
// the caller waits a moment and reads again. Only single statements outside of transactions may be
// sent again: of a text with several statements, some may have been executed.
//
// source is MariaDB, MySQL, PostgreSQL or SQLite. Without the route table there are no migrations,
// and all rows are OnSource.
func ReadRoute(ctx context.Context, source RouteQuerier, name string) (RouteRow, error) {
	row := RouteRow{Table: fold(name), Route: OnSource}
	if err := dialect.CheckIdent(row.Table); err != nil {
		return row, nil //nolint:nilerr // no job accepts such a table
	}
	// A literal, because it has the same form in all databases.
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

// readRoutes reads the routes of tables, whose keys are folded names, in one statement, because the
// routes of one job change together.
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
