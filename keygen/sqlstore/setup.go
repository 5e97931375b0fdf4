// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// cures says what to do about errors that a retry cannot cure.
var cures = map[dialect.Fault]string{
	dialect.NoTable:       "create the tables: call schema.Apply, or run the SQL that `shardid schema` prints",
	dialect.NoColumn:      "the table differs from what `shardid schema` prints; add the column",
	dialect.NoRight:       "grant the user the rights that the comments in the output of `shardid schema` list",
	dialect.ReadOnly:      "let this process write to the file and its directory, and open it without mode=ro",
	dialect.NoLogin:       "check user and password in the DSN",
	dialect.NoDatabase:    "check which database or file the DSN names, and create it when it is the right one",
	dialect.RowsNotLogged: "set binlog_format to ROW or MIXED, for the server and in the settings of its connections",
}

// explained adds to a database's error what to do, if a retry cannot cure it.
func explained(err error) error {
	if errors.As(err, new(*keygen.SetupError)) || errors.Is(err, keygen.ErrReadOnly) {
		return err
	}
	fault := dialect.FaultOf(err)
	if fault == dialect.OutOfRange {
		return fmt.Errorf("%w: %w", keygen.ErrExhausted, err)
	}
	if cure, ok := cures[fault]; ok {
		return &keygen.SetupError{Err: err, Cure: cure}
	}
	if err != nil && strings.Contains(err.Error(), poolClosed) {
		return &keygen.SetupError{Err: err, Cure: "keep the *sql.DB open until its generators are closed"}
	}
	if dialect.ServerReadOnly(err) {
		return fmt.Errorf("%w: %w", keygen.ErrReadOnly, err)
	}
	return dialect.Advised(err)
}

// writable adds to an error at the start what to do about a server that refuses changes. A
// running process retries instead, because a fail-over may be under way.
func writable(err error) error {
	if !errors.Is(err, keygen.ErrReadOnly) {
		return err
	}
	return &keygen.SetupError{Err: err, Cure: "connect to the primary, which accepts changes: this server is a replica, or somebody set it read-only"}
}

// poolClosed is the text of database/sql's error for a closed *sql.DB, which has no exported
// variable.
const poolClosed = "sql: database is closed"
