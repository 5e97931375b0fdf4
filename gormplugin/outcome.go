package gormplugin

import (
	"errors"

	"gorm.io/gorm"

	"github.com/shardid/shardid/sharding"
)

// wroteNothing reports whether the error of a failed INSERT proves that none of
// its rows exists. Any doubt (a deadline, a lost connection) means false: an id
// that is taken away from an existing row makes a retry insert it twice.
func wroteNothing(db *gorm.DB, rows int) bool {
	var refused *sharding.RouteError
	if errors.As(db.Error, &refused) {
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
	if t, ok := db.Dialector.(gorm.ErrorTranslator); ok && isConstraint(t.Translate(db.Error)) {
		return true
	}
	const sqliteConstraint = 19 // the low byte of every SQLITE_CONSTRAINT_… code
	var coded interface{ Code() int }
	return db.Dialector.Name() == "sqlite" && errors.As(db.Error, &coded) && coded.Code()&0xff == sqliteConstraint
}

func isConstraint(err error) bool {
	return errors.Is(err, gorm.ErrDuplicatedKey) || errors.Is(err, gorm.ErrForeignKeyViolated) || errors.Is(err, gorm.ErrCheckConstraintViolated)
}
