// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"cmp"
	"context"
	"database/sql"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
)

// Execer executes the statements of a Hook; *sqlx.DB, *sqlx.Tx and *sqlx.Conn are Execers.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Rebind(query string) string
}

// Queryer sends the queries of a Hook; *sqlx.DB, *sqlx.Tx and *sqlx.Conn are Queryers.
type Queryer interface {
	QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error)
	Rebind(query string) string
}

// rebinder is what Execer and Queryer have in common.
type rebinder interface{ Rebind(query string) string }

func driverName(e rebinder) string {
	if d, ok := e.(interface{ DriverName() string }); ok {
		return d.DriverName()
	}
	return ""
}

// mapperOf returns the configured mapper, otherwise the handle's own.
func (h *Hook) mapperOf(e rebinder) *reflectx.Mapper {
	if h.ownMapper {
		return h.mapper
	}
	var m *reflectx.Mapper
	switch e := e.(type) {
	case *sqlx.DB:
		m = e.Mapper
	case *sqlx.Tx:
		m = e.Mapper
	case *sqlx.Conn:
		m = e.Mapper
	}
	return cmp.Or(m, h.mapper)
}

// style is the text before a placeholder's number: "$", "@p" or ":arg". The empty style is a
// "?" without number.
type style string

// styleOf finds the style by a call of Rebind, because *sqlx.Conn does not reveal its
// driver's name.
func styleOf(e rebinder) style {
	s := e.Rebind("?")
	if s == "?" {
		return ""
	}
	return style(strings.TrimSuffix(s, "1"))
}
