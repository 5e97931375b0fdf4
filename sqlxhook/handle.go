// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
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

// driverOf returns what is known about the driver of an Execer or Queryer.
func (h *Hook) driverOf(e rebinder) *knownDriver {
	name := driverName(e)
	if known := h.lastDriver.Load(); known != nil && known.isOf(e, name) {
		return known
	}
	style := styleOf(e)
	known := &knownDriver{name, h.databaseOf(name, style), style}
	if name != "" {
		h.lastDriver.Store(known)
	}
	return known
}

func driverName(e rebinder) string {
	if db, ok := e.(*sqlx.DB); ok { // the most frequent type; this spares it the check for an interface
		return db.DriverName()
	}
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
	m := h.mapper
	switch e := e.(type) {
	case *sqlx.DB:
		m = e.Mapper
	case *sqlx.Tx:
		m = e.Mapper
	case *sqlx.Conn:
		m = e.Mapper
	}
	if m == nil {
		return h.mapper
	}
	return m
}

// knownDriver holds what was found out about the handles of a driver. A Hook keeps the last
// one only, because most programs have one driver.
type knownDriver struct {
	name     string
	database database
	style    style
}

// isOf reports whether d describes e. Handles that are neither *sqlx.DB nor *sqlx.Tx may
// write placeholders in any style, so each call asks them for it.
func (d *knownDriver) isOf(e rebinder, name string) bool {
	switch e.(type) {
	case *sqlx.DB, *sqlx.Tx:
		return name == d.name
	}
	return name == d.name && styleOf(e) == d.style
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
