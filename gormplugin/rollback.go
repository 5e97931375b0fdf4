// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"errors"

	"gorm.io/gorm"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// recordFailure runs at the end of the default transaction, before gorm commits it or rolls it
// back.
func recordFailure(db *gorm.DB, fl *filling) {
	if db.Error == nil || fl.inTx {
		return
	}
	if _, began := db.InstanceGet("gorm:started_transaction"); began {
		fl.failure = db.Error
	}
}

// rolledBack returns true when the transaction that gorm began was rolled back, with all rows
// of the statement and its associations: ROLLBACK added no error to that of the statement.
func (fl *filling) rolledBack(db *gorm.DB) bool {
	return fl.failure != nil && db.Error != nil && db.Error.Error() == fl.failure.Error()
}

// isUndone returns true when it is certain that no row of the statement exists. In doubt it
// returns false: after a deadline without a transaction, or an error of COMMIT. If a key were
// removed from the struct of an existing row, a retry would insert the row twice.
func (fl *filling) isUndone(db *gorm.DB) bool {
	return db.DryRun || db.Error != nil && (!fl.sent || fl.refused || fl.rolledBack(db))
}

// wroteNothing returns true when the error of a failed INSERT proves that none of its rows
// exists, whatever happens to the surrounding transaction.
func wroteNothing(db *gorm.DB, rows int) bool {
	var refused *sharding.RouteError
	var moved *sharding.MovedError
	if errors.As(db.Error, &refused) || errors.As(db.Error, &moved) {
		return true
	}
	translated := errors.Is(db.Error, gorm.ErrDuplicatedKey) || errors.Is(db.Error, gorm.ErrForeignKeyViolated) || errors.Is(db.Error, gorm.ErrCheckConstraintViolated)
	// A table without transactions keeps the rows before the violating one, so a violated
	// constraint proves this only for a single row.
	return rows == 1 && (translated || dialect.IsViolation(db.Error))
}
