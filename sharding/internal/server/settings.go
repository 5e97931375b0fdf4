// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// setting is a property of a session or its driver on which the meaning of statements or the form
// of rows depends. All databases must have the same value, because one table would have one value.
type setting struct {
	name, query string
	typed       bool // compared by whether the value is a text
}

var ofMySQL = []setting{
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
	{selectLimit, "@@SESSION.sql_select_limit", false},
	{place, "CONCAT(@@hostname, ':', @@port, '/', DATABASE())", false},
}

// inAnotherOrder is the end of the encoding if the driver reads bytes that sort otherwise than those in the database.
const inAnotherOrder = ", in another order"

// PostgreSQL 15 moved the provider of a database's collation to a column of its own.
var ofPostgreSQL = []setting{
	{"TimeZone", "current_setting('TimeZone')", false},
	{"the collation", "(SELECT CONCAT_WS(' ', d.datcollate, d.datctype, to_jsonb(d) ->> 'datlocprovider', COALESCE(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')) FROM pg_database d WHERE d.datname = current_database())", false},
	{"the encoding of texts", "CONCAT(getdatabaseencoding(), ' read as ' || " + dialect.ReadAs + ", CASE WHEN " + dialect.KeepsOrder + " THEN '' ELSE '" + inAnotherOrder + "' END)", false},
	{"DateStyle", "current_setting('DateStyle')", false},
	{"IntervalStyle", "current_setting('IntervalStyle')", false},
	{"standard_conforming_strings", "current_setting('standard_conforming_strings')", false},
	{"the driver's decimals", "1.5", true},
	{floats, "0.1::float8 + 0.2::float8", false},
	{place, "pg_postmaster_start_time() || '/' || current_database() || '.' || current_schema()", false},
}

// SQLite has no settings that matter. The file of a database in memory is empty.
var ofSQLite = []setting{{place, "(SELECT file FROM pragma_database_list WHERE name = 'main')", false}}

// Indexes of the settings that decide how SQL is parsed, and how values are computed and compared.
const (
	sqlMode       = 0 // in ofMySQL
	maxSortLength = 3
	divPrecision  = 4
	encoding      = 2 // in ofPostgreSQL
)

// Difference is a setting that has another value in a session.
type Difference struct{ Setting, There, Here string }

// Settings that must not cut the rows that shards return, or round their floats, of which different ones would be equal then.
const (
	selectLimit = "sql_select_limit"
	floats      = "0.1 + 0.2 of the driver"
)

// Unfit is a setting with which results of several databases cannot be combined.
type Unfit struct{ Setting, Value, Hint string }

// Unfit returns the first such setting, nil if there is none.
func (s *Server) Unfit() *Unfit {
	for i, of := range s.settings {
		switch value := s.values[i]; of.name {
		case selectLimit: // whose default is larger than any number of rows
			if n, err := strconv.ParseUint(value, 10, 64); err != nil || n < math.MaxInt64 {
				return &Unfit{Setting: of.name, Value: value, Hint: "remove it from the data source names, or from the options of the servers, and write LIMIT: shards would return a part of the rows that are combined"}
			}
		case floats:
			if value != "0.30000000000000004" {
				return &Unfit{Setting: of.name, Value: value, Hint: "set extra_float_digits to 1 in all data source names, or in the databases: floats that differ would be combined as equal ones"}
			}
		}
	}
	return nil
}

// Compare returns the first setting whose value in a session, There, is not that of the server, Here. It returns nil
// if all are the same. It also returns the place of the session's database: see [Server.Place].
func (s *Server) Compare(ctx context.Context, there dialect.Querier) (differs *Difference, at string, err error) {
	found, err := readSettings(ctx, there, s.settings)
	if err != nil {
		return nil, "", err
	}
	for i, of := range s.settings {
		if of.name != place && found[i] != s.values[i] {
			return &Difference{Setting: of.name, There: found[i], Here: s.values[i]}, "", nil
		}
	}
	return nil, found[len(found)-1], nil
}

// readSettings returns the values of settings in a session, by their indexes.
func readSettings(ctx context.Context, on dialect.Querier, settings []setting) ([]string, error) {
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
		if v == nil {
			continue
		}
		found[i] = fmt.Sprint(v)
		if settings[i].typed {
			found[i] = strconv.FormatBool(reflect.TypeOf(v) != reflect.TypeFor[string]())
		}
	}
	return found, nil
}
