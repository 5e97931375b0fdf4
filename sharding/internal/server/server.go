// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// Server is the dialect and the settings of a database. It may be used by several goroutines.
type Server struct {
	dialect.Server

	// Reads is how the server parses SQL.
	Reads sqlparse.Dialect
	// Arithmetic has the rules of the server's sums and quotients, and the form of its driver's decimals.
	Arithmetic merge.Dialect

	settings     []setting
	values       []string             // of the settings
	interpolates atomic.Pointer[bool] // nil before Interpolates has asked
}

// Detect returns the dialect of a database, and the settings of one of its sessions.
func Detect(ctx context.Context, db *sql.DB) (*Server, error) {
	found, err := dialect.Detect(ctx, db)
	if err != nil {
		return nil, err
	}
	s := &Server{Server: found}
	if err := s.readFrom(ctx, db); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	return s, nil
}

func (s *Server) readFrom(ctx context.Context, db *sql.DB) (err error) {
	switch s.Name() {
	case "sqlite":
		s.Reads, s.Arithmetic = sqlparse.Dialect{Family: sqlparse.SQLite}, merge.Dialect{Engine: merge.SQLite}
		s.settings = ofSQLite
	case "postgres":
		var decimal any
		if err := db.QueryRowContext(ctx, "SELECT 1.5").Scan(&decimal); err != nil {
			return err
		}
		_, isBytes := decimal.([]byte)
		s.Reads, s.Arithmetic = sqlparse.Dialect{Family: sqlparse.PostgreSQL}, merge.Dialect{Engine: merge.PostgreSQL, Bytes: isBytes}
		s.settings = ofPostgreSQL
	default:
		s.settings = ofMySQL
	}
	if s.values, err = readSettings(ctx, db, s.settings); err != nil || s.Name() == "sqlite" {
		return err
	}
	if s.Name() == "postgres" {
		s.Arithmetic.Recoded = strings.HasSuffix(s.values[encoding], inAnotherOrder)
		return nil
	}
	s.Reads = s.parsing(s.values[sqlMode])
	if s.Arithmetic, err = s.division(s.values[divPrecision]); err == nil {
		s.Arithmetic.Signed = strings.Contains(s.values[sqlMode], "NO_UNSIGNED_SUBTRACTION")
		s.Arithmetic.SortLength, err = strconv.Atoi(s.values[maxSortLength])
	}
	return err
}

// parsing returns how MySQL and MariaDB parse SQL with a sql_mode.
func (s *Server) parsing(sqlMode string) sqlparse.Dialect {
	mode := dialect.ParseMode(sqlMode)
	d := sqlparse.Dialect{Family: sqlparse.MySQL, Flavor: sqltext.MySQL, PipesAsConcat: mode.PipesAsConcat, LowNot: !strings.Contains(sqlMode, "HIGH_NOT_PRECEDENCE")}
	if s.Kind == dialect.KindMariaDB {
		d.Family = sqlparse.MariaDB
	}
	if mode.ANSIQuotes {
		d.Flavor &^= sqltext.DoubleQuoteStrings
	}
	if mode.NoBackslashEscapes {
		d.Flavor &^= sqltext.BackslashEscapes
	}
	return d
}

// division returns the arithmetic of MySQL and MariaDB with a div_precision_increment, the number of digits that a
// quotient of decimals has more than the dividend.
func (s *Server) division(increment string) (merge.Dialect, error) {
	more, err := strconv.Atoi(increment)
	by := merge.Division{More: more, Most: 30, Rounds: true}
	if s.Kind == dialect.KindMariaDB {
		by = merge.Division{More: more, Most: 38}
	}
	return merge.Dialect{Engine: merge.MySQL, Division: by}, err
}

// Interpolates reports whether the driver of MySQL and MariaDB writes arguments into the text (interpolateParams)
// instead of preparing a statement: the server counts those. It asks once.
func (s *Server) Interpolates(ctx context.Context, on dialect.Querier) (bool, error) {
	if known := s.interpolates.Load(); known != nil {
		return *known, nil
	}
	if pool, ok := on.(*sql.DB); ok {
		conn, err := pool.Conn(ctx)
		if err != nil {
			return false, err
		}
		defer func() { _ = conn.Close() }()
		on = conn
	}
	var executed [2]int64
	for i := range executed {
		var name string
		var one int
		if err := on.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Com_stmt_execute'").Scan(&name, &executed[i]); err != nil {
			return false, err
		}
		if err := on.QueryRowContext(ctx, "SELECT ?", 1).Scan(&one); err != nil {
			return false, err
		}
	}
	interpolates := executed[0] == executed[1]
	s.interpolates.Store(&interpolates)
	return interpolates, nil
}
