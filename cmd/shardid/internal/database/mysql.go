// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// openURL opens mysql://user:password@host:port/database?settings.
func openURL(ctx context.Context, dsn string) (*sql.DB, error) {
	u, err := parseURL(dsn, "mysql://user:password@host:3306/shop")
	if err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	c.Net = "tcp"
	c.Addr = net.JoinHostPort(u.Hostname(), portOf(u))
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.DBName = strings.TrimPrefix(u.Path, "/")
	native := c.FormatDSN()
	if u.RawQuery != "" {
		separator := "?"
		if strings.Contains(native[strings.LastIndex(native, "/"):], "?") {
			separator = "&"
		}
		native += separator + u.RawQuery
	}
	return openMySQL(ctx, native, dsn)
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return "3306"
}

// openMySQL opens a DSN in the driver's form. given is the name that the user wrote.
func openMySQL(ctx context.Context, dsn, given string) (*sql.DB, error) {
	shown := dialect.RedactDSN(given)
	c, err := mysql.ParseDSN(dsn)
	if err != nil { // the driver's text may quote any part of the name
		return nil, input.Errorf("%s cannot be read; write it as user:password@tcp(host:3306)/shop", shown)
	}
	if c.DBName == "" {
		return nil, input.Errorf("%s names no database; add it at the end, as in user:password@tcp(host:3306)/shop", shown)
	}
	if c.Timeout == 0 {
		c.Timeout = connectTimeout
	}
	if c.MaxAllowedPacket == mysql.NewConfig().MaxAllowedPacket {
		c.MaxAllowedPacket = 0 // the server's limit; a row may then be longer, as the driver sends long values one by one
	}
	c.Logger = &mysql.NopLogger{} // its messages are returned as errors, too
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, input.Errorf("%s cannot be used; check its settings", shown)
	}
	db := sql.OpenDB(connector)
	if err := ping(ctx, db); err != nil {
		return nil, errors.Join(refused(shown, err, c.Passwd), db.Close())
	}
	return db, nil
}
