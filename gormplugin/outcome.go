package gormplugin

import (
	"errors"
	"reflect"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

// outcome is how the transaction ended that gorm began for a statement.
type outcome struct {
	began   bool  // there was one, and the statement failed in it
	failure error // the statement's error before ROLLBACK
}

// judge runs after everything in the default transaction, before gorm commits it
// or rolls it back.
func (f *fill) judge(db *gorm.DB) {
	if db.Error == nil {
		return
	}
	fl := stateOf(db.Statement)
	if fl == nil || fl.inTx {
		return
	}
	_, began := db.InstanceGet("gorm:started_transaction")
	fl.outcome = outcome{began: began, failure: db.Error}
}

// rolledBack reports whether the transaction that gorm began was undone, and
// with it whatever the statement and its associations wrote.
func (fl *filling) rolledBack(db *gorm.DB) bool {
	return fl.outcome.began && isSame(db.Error, fl.outcome.failure)
}

// isUndone reports whether it is certain that no row of the statement exists:
// any doubt (a deadline without a transaction, an error of COMMIT) means false.
// A key that is taken away from an existing row makes a retry insert it twice.
func (fl *filling) isUndone(db *gorm.DB) bool {
	return db.DryRun || db.Error != nil && (!fl.sent || fl.refused || fl.rolledBack(db))
}

// isSame reports whether ROLLBACK added no error of its own to the statement's.
func isSame(now, before error) bool {
	if reflect.TypeOf(now) != reflect.TypeOf(before) {
		return false
	}
	return !reflect.TypeOf(now).Comparable() || now == before //nolint:errorlint // the very same value
}

// wroteNothing reports whether the error of a failed INSERT proves that none of
// its rows exists, whatever becomes of the transaction around it.
func wroteNothing(db *gorm.DB, rows int) bool {
	var refused *sharding.RouteError
	var moved *sharding.MovedError
	if errors.As(db.Error, &refused) || errors.As(db.Error, &moved) {
		return true
	}
	// A table without transactions keeps the rows before the offending one, so a
	// violated constraint proves something about a single row only.
	return rows == 1 && violated(db)
}

// violated reports whether the database refused the row for a constraint.
func violated(db *gorm.DB) bool {
	if isConstraint(db.Error) {
		return true
	}
	if t, ok := db.Dialector.(gorm.ErrorTranslator); ok {
		for err := db.Error; err != nil; err = errors.Unwrap(err) { // it knows what the driver has returned
			if isConstraint(t.Translate(err)) {
				return true
			}
		}
	}
	const sqliteConstraint = 19 // the low byte of every SQLITE_CONSTRAINT_… code
	var coded interface{ Code() int }
	return db.Dialector.Name() == "sqlite" && errors.As(db.Error, &coded) && coded.Code()&0xff == sqliteConstraint
}

func isConstraint(err error) bool {
	return errors.Is(err, gorm.ErrDuplicatedKey) || errors.Is(err, gorm.ErrForeignKeyViolated) || errors.Is(err, gorm.ErrCheckConstraintViolated)
}
