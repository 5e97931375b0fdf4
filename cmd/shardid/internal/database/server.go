// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/schema/migrate"
)

// parseURL parses the name of a server. form is the expected form, for the error.
func parseURL(dsn, form string) (*url.URL, error) {
	u, err := url.Parse(dsn)
	// An unescaped /, ? or # in a password would make the rest of the password another part of
	// the URL, which the driver's errors show.
	if err != nil || u.Hostname() == "" || strings.Contains(u.Path+u.RawQuery, "@") || u.Fragment != "" {
		return nil, input.Errorf("%s is not a URL of the form %s; write special characters in the password as %%XX", dialect.RedactDSN(dsn), form)
	}
	return u, nil
}

// Failed returns shown, the error for a database that cannot be used because of cause, as a mistake
// of the user unless the database is away.
func Failed(cause, shown error) error {
	if Away(cause) {
		return shown
	}
	return input.Wrap(shown)
}

// refused is the error for a server that does not answer or refuses the user.
func refused(shown string, err error, password string) error {
	return Failed(err, fmt.Errorf("cannot connect to %s: %w; check the address, the user and the password, and that the user has rights on the database", shown, scrubbed{err, password}))
}

// Away reports whether a server could not be reached, which may pass: a supervisor should
// try again. An unknown host name is a mistake.
func Away(err error) bool {
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return false
	}
	return migrate.Transient(err) || errors.Is(err, context.DeadlineExceeded)
}

func ping(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return db.PingContext(ctx)
}

// scrubbed is an error without the password in its text.
type scrubbed struct {
	err    error
	secret string
}

func (s scrubbed) Unwrap() error { return s.err }

func (s scrubbed) Error() string {
	text := s.err.Error()
	if s.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, s.secret, "***")
}
