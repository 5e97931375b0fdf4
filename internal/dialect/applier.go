// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Applier is a configured connection through which a server replicates the writes of another one.
// It need not be running.
type Applier struct {
	Channel string // "" is the default one
	From    string // host:port of the server that it replicates
	// Triggers: the tables' triggers fire for the rows that it applies. That is so only on a
	// MariaDB with slave_run_triggers_for_rbr.
	Triggers bool
}

// ErrNotPermitted: the user may not read the requested information. The error names the missing
// right.
var ErrNotPermitted = errors.New("the user lacks a right")

// Appliers returns the appliers that are configured on a MySQL or MariaDB server, those of Group
// Replication included. On MySQL it needs SELECT on
// performance_schema.replication_connection_configuration, on MariaDB SLAVE MONITOR. Without that
// right the error wraps ErrNotPermitted.
func Appliers(ctx context.Context, db Querier, s Server) (all []Applier, err error) {
	grant := "SELECT ON performance_schema.replication_connection_configuration"
	switch s.Kind {
	case KindMySQL:
		all, err = mysqlAppliers(ctx, db)
	case KindMariaDB:
		grant = "SLAVE MONITOR ON *.*"
		all, err = mariadbAppliers(ctx, db)
	default:
		return nil, fmt.Errorf("%s is not asked for its appliers", s.Kind)
	}
	switch {
	case err != nil && FaultOf(err) == NoRight:
		return nil, fmt.Errorf("%w to read the server's replication; GRANT %s: %w", ErrNotPermitted, grant, err)
	case err != nil:
		return nil, fmt.Errorf("ask the server for its appliers: %w", err)
	}
	return all, nil
}

func mysqlAppliers(ctx context.Context, db Querier) (all []Applier, err error) {
	return all, Each(ctx, db, func(rows *sql.Rows) error {
		var a Applier
		var host sql.NullString
		var port sql.NullInt64
		err := rows.Scan(&a.Channel, &host, &port)
		a.From = fmt.Sprintf("%s:%d", host.String, port.Int64)
		all = append(all, a)
		return err
	}, "SELECT CHANNEL_NAME, HOST, PORT FROM performance_schema.replication_connection_configuration")
}

// mariadbAppliers finds the columns by their names, because their order differs between versions.
func mariadbAppliers(ctx context.Context, db Querier) (all []Applier, err error) {
	err = Each(ctx, db, func(rows *sql.Rows) error {
		var a Applier
		var host, port sql.NullString
		err := scanNamed(rows, map[string]any{"Connection_name": &a.Channel, "Master_Host": &host, "Master_Port": &port})
		a.From = host.String + ":" + port.String
		all = append(all, a)
		return err
	}, "SHOW ALL SLAVES STATUS")
	if err != nil || len(all) == 0 {
		return nil, err
	}
	v, err := variables(ctx, db, "slave_run_triggers_for_rbr")
	for i := range all {
		run, known := v["slave_run_triggers_for_rbr"]
		all[i].Triggers = known && run != "NO"
	}
	return all, err
}

// scanNamed scans the columns with these names, and ignores the others.
func scanNamed(rows *sql.Rows, into map[string]any) error {
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]any, len(columns))
	found := 0
	for i, name := range columns {
		values[i] = new(sql.RawBytes)
		if to, ok := into[name]; ok {
			values[i] = to
			found++
		}
	}
	if found < len(into) {
		return fmt.Errorf("the result has the columns %q, which lack a needed one", columns)
	}
	return rows.Scan(values...)
}
