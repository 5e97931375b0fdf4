// SPDX-License-Identifier: Apache-2.0

package versions_test

import (
	"context"
	"database/sql/driver"
	"errors"
)

// gone is a database that does not answer.
type gone struct{}

var errGone = errors.New("connection refused")

func (gone) Connect(context.Context) (driver.Conn, error) { return nil, errGone }
func (gone) Driver() driver.Driver                        { return gone{} }
func (gone) Open(string) (driver.Conn, error)             { return nil, errGone }
