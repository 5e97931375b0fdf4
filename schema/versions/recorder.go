// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
)

// recorder is a driver that records the statements it gets. It serves one caller at a time.
type recorder struct {
	now     script
	undoing bool
}

// record returns the statements that goose would send for a version.
func (r *recorder) record(ctx context.Context, p *goose.Provider, number int64, up bool) (script, error) {
	r.now, r.undoing = script{}, !up
	_, err := p.ApplyVersion(ctx, number, up)
	return r.now, err
}

// Connect returns a connection that records.
func (r *recorder) Connect(context.Context) (driver.Conn, error) { return recording{r}, nil }

// Driver returns the recorder; nobody calls it.
func (r *recorder) Driver() driver.Driver { return r }

// Open returns a connection that records.
func (r *recorder) Open(string) (driver.Conn, error) { return recording{r}, nil }

// recording is a connection of a recorder.
type recording struct{ *recorder }

var errRecorder = errors.New("versions: the recorder has no rows")

// Prepare is not called, because there is ExecContext.
func (recording) Prepare(string) (driver.Stmt, error) { return nil, errRecorder }

// Close has nothing to close.
func (recording) Close() error { return nil }

// Begin notes that the version runs in a transaction.
func (c recording) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx notes that the version runs in a transaction.
func (c recording) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	c.now.tx = true
	return c, nil
}

// Commit has nothing to commit.
func (recording) Commit() error { return nil }

// Rollback has nothing to undo.
func (recording) Rollback() error { return nil }

// ExecContext records the statement.
func (c recording) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	c.now.statements = append(c.now.statements, text)
	return driver.ResultNoRows, nil
}

// gooseStore tells goose that no version was run or, for Down, that all were.
type gooseStore struct{ *recorder }

// Tablename is not used in any statement.
func (gooseStore) Tablename() string { return logTable }

// CreateVersionTable has nothing to create.
func (gooseStore) CreateVersionTable(context.Context, database.DBTxConn) error { return nil }

// Insert has nothing to note.
func (gooseStore) Insert(context.Context, database.DBTxConn, database.InsertRequest) error {
	return nil
}

// Delete has nothing to note.
func (gooseStore) Delete(context.Context, database.DBTxConn, int64) error { return nil }

// GetMigration always answers for version 0, by which goose checks whether the table
// exists.
func (s gooseStore) GetMigration(_ context.Context, _ database.DBTxConn, number int64) (*database.GetMigrationResult, error) {
	if number == 0 || s.undoing {
		return &database.GetMigrationResult{IsApplied: true}, nil
	}
	return nil, database.ErrVersionNotFound
}

// GetLatestVersion is not called for a single version.
func (gooseStore) GetLatestVersion(context.Context, database.DBTxConn) (int64, error) {
	return 0, database.ErrVersionNotFound
}

// ListMigrations is not called for a single version.
func (gooseStore) ListMigrations(context.Context, database.DBTxConn) ([]*database.ListMigrationsResult, error) {
	return nil, nil
}
