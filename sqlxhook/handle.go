// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"context"
	"database/sql"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
)

// Execer is what a Hook sends statements to; *sqlx.DB, *sqlx.Tx and *sqlx.Conn are
// Execers.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Rebind(query string) string
}

// Queryer is what a Hook sends queries to; *sqlx.DB, *sqlx.Tx and *sqlx.Conn are
// Queryers.
type Queryer interface {
	QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error)
	Rebind(query string) string
}

var (
	_ Execer  = (*sqlx.DB)(nil)
	_ Execer  = (*sqlx.Tx)(nil)
	_ Execer  = (*sqlx.Conn)(nil)
	_ Queryer = (*sqlx.DB)(nil)
	_ Queryer = (*sqlx.Tx)(nil)
	_ Queryer = (*sqlx.Conn)(nil)
)

type rebinder interface{ Rebind(query string) string }

// handle is what a plan depends on of the handle it is sent to.
type handle struct {
	family family
	style  style
	mapper *reflectx.Mapper
}

func (h *Hook) handleOf(e rebinder) handle {
	driver := driverOf(e)
	if known := h.lastDriver.Load(); known != nil && known.isOf(e, driver) {
		return handle{known.family, known.style, h.mapperOf(e)}
	}
	style := styleOf(e)
	known := &knownDriver{driver, h.familyOf(driver, style), style}
	if driver != "" {
		h.lastDriver.Store(known)
	}
	return handle{known.family, style, h.mapperOf(e)}
}

func driverOf(e rebinder) string {
	if db, ok := e.(*sqlx.DB); ok { // the most frequent one, asked without a search for the method
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

// knownDriver is what was found out about the handles of a driver. A program
// mostly has one, so it is the last one that is remembered.
type knownDriver struct {
	name   string
	family family
	style  style
}

// isOf reports whether it speaks of e. Handles of other kinds may write their
// placeholders as they like, so they are asked each time.
func (d *knownDriver) isOf(e rebinder, name string) bool {
	switch e.(type) {
	case *sqlx.DB, *sqlx.Tx:
		return name == d.name
	}
	return name == d.name && styleOf(e) == d.style
}

// style is what stands before a placeholder's number: "$", "@p", ":arg"; ""
// means the plain "?".
type style string

// styleOf asks the handle, as *sqlx.Conn does not tell its driver's name.
func styleOf(e rebinder) style {
	s := e.Rebind("?")
	if s == "?" {
		return ""
	}
	return style(strings.TrimSuffix(s, "1"))
}
