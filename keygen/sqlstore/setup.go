package sqlstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// cures say what to do about faults that another try meets again.
var cures = map[dialect.Fault]string{
	dialect.NoTable:    "create the tables: call schema.Apply, or run the SQL that `shardid schema` prints",
	dialect.NoColumn:   "the table is not as `shardid schema` prints it; add the column",
	dialect.NoRight:    "give the user the rights that stand in the comments of what `shardid schema` prints",
	dialect.ReadOnly:   "let this process write to the file and its directory, and open it without mode=ro",
	dialect.NoLogin:    "check user and password in the DSN",
	dialect.NoDatabase: "check which database or file the DSN names, and create it when it is the right one",
}

// explained adds to an error of the database what to do, when nothing but doing
// it helps.
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

// writable adds to the error of a start what to do where the server takes no changes.
// A process that runs goes on asking instead, as a fail-over may be under way.
func writable(err error) error {
	if !errors.Is(err, keygen.ErrReadOnly) {
		return err
	}
	return &keygen.SetupError{Err: err, Cure: "connect to the primary, which takes changes: this server is a replica, or is set read-only"}
}

// poolClosed is what database/sql says of a closed *sql.DB, in an error without a
// name.
const poolClosed = "sql: database is closed"
