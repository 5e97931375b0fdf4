// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Dialect is one family of databases.
type Dialect interface {
	// Name is "mysql" (which includes MariaDB), "postgres" or "sqlite".
	Name() string
	// Quote returns ident as a quoted identifier, with quote characters doubled.
	Quote(ident string) string
	// Placeholder returns the placeholder of the n-th argument, counted from 1.
	Placeholder(n int) string
}

// Named returns the dialect called name. "mariadb" is an alias of "mysql", and "postgresql" of
// "postgres".
func Named(name string) (Dialect, error) {
	switch strings.ToLower(name) {
	case "mysql", "mariadb":
		return MySQL{}, nil
	case "postgres", "postgresql":
		return Postgres{}, nil
	case "sqlite", "sqlite3":
		return SQLite{}, nil
	}
	return nil, fmt.Errorf("%w, not %q", ErrUnknown, name)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,63}$`)

// ErrIdentifier: a name cannot be used as a table or column name.
var ErrIdentifier = errors.New("not a plain SQL name (letters, digits, _ and $, at most 64, not starting with a digit)")

// CheckIdent refuses names that would need more than plain quoting, so that a name from a
// configuration can never contain SQL.
func CheckIdent(name string) error {
	if !identifier.MatchString(name) {
		return fmt.Errorf("%q: %w", name, ErrIdentifier)
	}
	return nil
}
