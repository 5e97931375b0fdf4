// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/merge"
)

// server is the dialect and the settings of the databases.
type server struct {
	dialect.Server
	reads sqlparse.Dialect
	// more is div_precision_increment of MySQL and MariaDB: the number of digits that a quotient of
	// decimals has more than the dividend.
	more int
	// writes is whether the driver of MySQL and MariaDB writes arguments into the text, nil before that was asked:
	// see interpolates.
	writes atomic.Pointer[bool]
	// bytes is true if the driver of PostgreSQL returns decimals as bytes.
	bytes bool
}

func (s *server) parse(text string) *sqlparse.Statement { return sqlparse.Parse(text, s.reads) }

// arithmetic returns the rules of the server's sums and quotients.
func (s *server) arithmetic() merge.Dialect {
	switch {
	case s.Name() == "sqlite":
		return merge.Dialect{Engine: merge.SQLite}
	case s.Name() == "postgres":
		return merge.Dialect{Engine: merge.PostgreSQL, Bytes: s.bytes}
	case s.Kind == dialect.KindMariaDB:
		return merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: s.more, Most: 38}}
	}
	return merge.Dialect{Engine: merge.MySQL, Division: merge.Division{More: s.more, Most: 30, Rounds: true}}
}

// ask returns the dialect and the settings of the databases. It asks the home database once, and
// again after an error.
func (d *database) ask(ctx context.Context) (*server, error) {
	if err := d.askLock.lock(ctx); err != nil {
		return nil, err
	}
	defer d.askLock.unlock()
	if d.server != nil {
		return d.server, nil
	}
	found, err := dialect.Detect(ctx, d.home)
	if err != nil {
		return nil, fmt.Errorf("shardsql: the home database: %w", err)
	}
	s := &server{Server: found}
	if err := s.settings(ctx, d); err != nil {
		return nil, fmt.Errorf("shardsql: settings of the home database: %w", err)
	}
	d.server = s
	return s, nil
}

// settings reads the settings that decide how the databases parse SQL and divide.
func (s *server) settings(ctx context.Context, d *database) error {
	switch s.Name() {
	case "postgres":
		s.reads = sqlparse.Dialect{Family: sqlparse.PostgreSQL}
		var decimal any
		if err := d.home.QueryRowContext(ctx, "SELECT 1.5").Scan(&decimal); err != nil {
			return err
		}
		_, s.bytes = decimal.([]byte)
		home, err := readSession(ctx, d.home, postgresSettings)
		d.checkedSettings.home = home
		return err
	case "sqlite":
		s.reads = sqlparse.Dialect{Family: sqlparse.SQLite}
		return nil
	}
	home, err := readSession(ctx, d.home, mysqlSettings)
	if err != nil {
		return err
	}
	d.checkedSettings.home = home
	if s.more, err = strconv.Atoi(home[divPrecision]); err != nil {
		return err
	}
	mode := dialect.ParseMode(home[sqlMode])
	s.reads = sqlparse.Dialect{Family: sqlparse.MySQL, Flavor: sqltext.MySQL, PipesAsConcat: mode.PipesAsConcat, LowNot: !strings.Contains(home[sqlMode], "HIGH_NOT_PRECEDENCE")}
	if s.Kind == dialect.KindMariaDB {
		s.reads.Family = sqlparse.MariaDB
	}
	if mode.ANSIQuotes {
		s.reads.Flavor &^= sqltext.DoubleQuoteStrings
	}
	if mode.NoBackslashEscapes {
		s.reads.Flavor &^= sqltext.BackslashEscapes
	}
	return nil
}

// interpolates reports whether the driver of MySQL and MariaDB writes arguments into the text (interpolateParams)
// instead of preparing a statement: the server counts those. It asks once.
func (s *server) interpolates(ctx context.Context, on dialect.Querier) (bool, error) {
	if known := s.writes.Load(); known != nil {
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
	writes := executed[0] == executed[1]
	s.writes.Store(&writes)
	return writes, nil
}

// setting is a property of a session or its driver on which the meaning of statements or the form
// of rows depends. All databases must have the same value, because one table would have one value.
type setting struct {
	name, query string
	typed       bool // compared by whether the value is a text
}

var mysqlSettings = []setting{
	{"sql_mode", "@@SESSION.sql_mode", false},
	{"time_zone", "CASE WHEN IF(@@SESSION.time_zone = 'SYSTEM', @@system_time_zone, @@SESSION.time_zone) IN ('+00:00', 'UTC', 'Etc/UTC') THEN 'UTC'" +
		" WHEN @@SESSION.time_zone = 'SYSTEM' THEN @@system_time_zone ELSE @@SESSION.time_zone END", false},
	{"collation_connection", "@@SESSION.collation_connection", false},
	{"max_sort_length", "@@SESSION.max_sort_length", false},
	{"div_precision_increment", "@@SESSION.div_precision_increment", false},
	{"lc_time_names", "@@SESSION.lc_time_names", false},
	{"default_week_format", "@@SESSION.default_week_format", false},
	{"group_concat_max_len", "@@SESSION.group_concat_max_len", false},
	{"parseTime of the driver", "CAST('2001-02-03 04:05:06' AS DATETIME)", true},
}

// PostgreSQL 15 moved the provider of a database's collation to a column of its own.
var postgresSettings = []setting{
	{"TimeZone", "current_setting('TimeZone')", false},
	{"the collation", "(SELECT CONCAT_WS(' ', d.datcollate, d.datctype, to_jsonb(d) ->> 'datlocprovider', COALESCE(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')) FROM pg_database d WHERE d.datname = current_database())", false},
	{"server_encoding", "current_setting('server_encoding')", false},
	{"DateStyle", "current_setting('DateStyle')", false},
	{"IntervalStyle", "current_setting('IntervalStyle')", false},
	{"standard_conforming_strings", "current_setting('standard_conforming_strings')", false},
	{"the driver's decimals", "1.5", true},
}

// Indexes in mysqlSettings of the settings that decide how SQL is parsed.
const (
	sqlMode      = 0
	divPrecision = 4
)

// checkedSettings caches which pools have the settings of the home database.
type checkedSettings struct {
	home  []string // by the indexes of the settings
	pools sync.Map // of *sql.DB; a sync.Map, because each statement reads it
}

// checkSettings refuses a database whose settings differ from those of the home database. It checks a pool
// when a connection of it is first used.
func (d *database) checkSettings(ctx context.Context, pool *sql.DB, on dialect.Querier) error {
	if pool == d.home || d.server.Name() == "sqlite" {
		return nil
	}
	settings := mysqlSettings
	if d.server.Name() == "postgres" {
		settings = postgresSettings
	}
	if _, agrees := d.checkedSettings.pools.Load(pool); agrees {
		return nil
	}
	found, err := readSession(ctx, on, settings)
	if err != nil {
		return fmt.Errorf("shardsql: settings of %s: %w", d.nameOf(pool), err)
	}
	for i, s := range settings {
		if found[i] != d.checkedSettings.home[i] {
			return &sharding.RouteError{Op: "statement", Err: fmt.Errorf("%w: %s is %q in %s, and %q in the home database", sharding.ErrSettings, s.name, found[i], d.nameOf(pool), d.checkedSettings.home[i]),
				Hint: "set it to the same value in all data source names, or on all servers"}
		}
	}
	d.checkedSettings.pools.Store(pool, true)
	return nil
}

func readSession(ctx context.Context, on dialect.Querier, settings []setting) ([]string, error) {
	queries := make([]string, len(settings))
	for i, s := range settings {
		queries[i] = s.query
	}
	values := make([]any, len(settings))
	places := make([]any, len(settings))
	for i := range values {
		places[i] = &values[i]
	}
	if err := on.QueryRowContext(ctx, "SELECT "+strings.Join(queries, ", ")).Scan(places...); err != nil {
		return nil, err
	}
	found := make([]string, len(settings))
	for i, v := range values {
		if text, ok := v.([]byte); ok {
			v = string(text)
		}
		found[i] = fmt.Sprint(v)
		if settings[i].typed {
			found[i] = strconv.FormatBool(reflect.TypeOf(v) != reflect.TypeFor[string]())
		}
	}
	return found, nil
}
