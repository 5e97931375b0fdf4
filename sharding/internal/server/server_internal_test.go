// SPDX-License-Identifier: Apache-2.0

package server

import (
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding/internal/merge"
	_ "modernc.org/sqlite"
)

func TestTheModeOfMySQLDecidesHowATextIsParsed(t *testing.T) {
	mysql, mariadb := &Server{}, &Server{Server: dialect.Server{Kind: dialect.KindMariaDB}}
	if d := mysql.parsing("STRICT_TRANS_TABLES"); d != (sqlparse.Dialect{Family: sqlparse.MySQL, Flavor: sqltext.MySQL, LowNot: true}) {
		t.Errorf("%+v", d)
	}
	if d := mariadb.parsing("ANSI_QUOTES,PIPES_AS_CONCAT"); d != (sqlparse.Dialect{Family: sqlparse.MariaDB, Flavor: sqltext.MySQL &^ sqltext.DoubleQuoteStrings, PipesAsConcat: true, LowNot: true}) {
		t.Errorf("%+v", d)
	}
	if d := mysql.parsing("HIGH_NOT_PRECEDENCE,NO_BACKSLASH_ESCAPES"); d.LowNot || d.Flavor != sqltext.MySQL&^sqltext.BackslashEscapes {
		t.Errorf("%+v", d)
	}
}

func TestMySQLRoundsQuotientsAndMariaDBHasMoreDigits(t *testing.T) {
	mysql, mariadb := &Server{}, &Server{Server: dialect.Server{Kind: dialect.KindMariaDB}}
	if d, err := mysql.division("4"); err != nil || d.Division != (merge.Division{More: 4, Most: 30, Rounds: true}) {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := mariadb.division("6"); err != nil || d.Division != (merge.Division{More: 6, Most: 38}) {
		t.Errorf("%+v, %v", d, err)
	}
	if _, err := mysql.division(""); err == nil {
		t.Error("no digits are a number")
	}
}

func TestSQLiteHasNoSettings(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	s, err := Detect(t.Context(), db)
	if err != nil || s.Reads.Family != sqlparse.SQLite || s.Arithmetic.Engine != merge.SQLite {
		t.Fatalf("%+v, %v", s, err)
	}
	if d, at, err := s.Compare(t.Context(), db); d != nil || at != s.Place() || at != "" || err != nil {
		t.Errorf("%v, %q, %v", d, at, err)
	}
}

func TestASettingThatCutsOrRoundsRowsIsUnfit(t *testing.T) {
	for _, c := range []struct {
		of    setting
		value string
		unfit bool
	}{
		{setting{name: selectLimit}, "18446744073709551615", false},
		{setting{name: selectLimit}, "9223372036854775807", false}, // of other servers
		{setting{name: selectLimit}, "1000", true},
		{setting{name: selectLimit}, "", true},
		{setting{name: floats}, "0.30000000000000004", false},
		{setting{name: floats}, "0.3", true},
		{setting{name: "sql_mode"}, "", false},
	} {
		s := &Server{settings: []setting{{name: place}, c.of}, values: []string{"", c.value}}
		if u := s.Unfit(); (u != nil) != c.unfit || u != nil && (u.Setting != c.of.name || u.Value != c.value || u.Hint == "") {
			t.Errorf("%s %q: %+v", c.of.name, c.value, u)
		}
	}
}

func TestTheFirstSettingThatDiffersIsNamed(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	session := func(change string, to any) {
		names, values := make([]string, len(ofPostgreSQL)), make([]driver.Value, len(ofPostgreSQL))
		for i, of := range ofPostgreSQL {
			if names[i], values[i] = of.name, of.name; of.name == change {
				values[i] = to
			}
		}
		mock.ExpectQuery(`current_setting\('TimeZone'\)`).WillReturnRows(sqlmock.NewRows(names).AddRow(values...))
	}
	session("", nil)
	s := &Server{settings: ofPostgreSQL}
	if s.values, err = readSettings(t.Context(), db, s.settings); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change string
		to     any
		differ string
	}{
		{"", nil, ""},
		{"DateStyle", []byte("DateStyle"), ""},     // the same, of a driver that returns bytes
		{"the driver's decimals", "2.5", ""},       // its type is compared
		{"the driver's decimals", []byte("1"), ""}, // which is a text for this purpose
		{"the driver's decimals", 1.5, "the driver's decimals"},
		{"TimeZone", "Asia/Tokyo", "TimeZone"},
		{place, "elsewhere", ""},
	} {
		session(c.change, c.to)
		d, _, err := s.Compare(t.Context(), db)
		if err != nil || (d == nil) != (c.differ == "") || d != nil && d.Setting != c.differ {
			t.Errorf("%s is %v: %v, %v", c.change, c.to, d, err)
		}
	}
	mock.ExpectQuery(".").WillReturnError(sql.ErrConnDone)
	if _, _, err := s.Compare(t.Context(), db); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("%v", err)
	}
}
