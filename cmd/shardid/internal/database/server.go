// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"database/sql"
	"net/url"
	"strings"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
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

// refused is the error for a server that does not answer or refuses the user.
func refused(shown string, err error, password string) error {
	return input.Errorf("cannot connect to %s: %w; check the address, the user and the password, and that the user has rights on the database", shown, scrubbed{err, password})
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
