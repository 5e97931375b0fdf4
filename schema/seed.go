// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"unicode/utf8"
)

const maxTagLen = 128 // characters, leaf_alloc.biz_tag

// Seed makes the next id of a tag in leaf_alloc at least next, and returns what
// it is now; the tag's segment generator issues nothing below. It never lowers
// a tag, so it may be repeated, and called by several processes at once. A tag
// that has no row gets one with this step; an existing row keeps its own.
//
// The tag has 1 to 128 characters, next is 1 or above, and step, the number of
// ids a process takes at a time, is from 1 to 2147483647; otherwise the error
// wraps ErrSeed. A good next is NextID of the table plus the ids it may give
// by itself until every writer uses the generator.
func Seed(ctx context.Context, db *sql.DB, tag string, next, step int64) (int64, error) {
	if err := validateSeed(tag, next, step); err != nil {
		return 0, err
	}
	var now int64
	err := withSession(ctx, db, func(s session) error {
		return s.inTx(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, seedSQL(s), tag, next, step); err != nil {
				return err
			}
			// The upsert holds the row's lock until the commit.
			return tx.QueryRowContext(ctx, "SELECT "+s.Quote("max_id")+" FROM "+s.Quote("leaf_alloc")+
				" WHERE "+s.Quote("biz_tag")+" = "+s.Placeholder(1), tag).Scan(&now)
		})
	})
	if err != nil {
		return 0, fmt.Errorf("schema: seed tag %q (Apply creates the table it needs): %w", tag, err)
	}
	return now, nil
}

func seedSQL(s session) string {
	if s.Name() == "mysql" {
		return "INSERT INTO `leaf_alloc` (`biz_tag`, `max_id`, `step`) VALUES (?, ?, ?)" +
			" ON DUPLICATE KEY UPDATE `max_id` = GREATEST(`max_id`, VALUES(`max_id`))"
	}
	return `INSERT INTO "leaf_alloc" ("biz_tag", "max_id", "step")` +
		" VALUES (" + s.Placeholder(1) + ", " + s.Placeholder(2) + ", " + s.Placeholder(3) + ")" +
		` ON CONFLICT ("biz_tag") DO UPDATE SET "max_id" = excluded."max_id", "update_time" = CURRENT_TIMESTAMP` +
		` WHERE excluded."max_id" > "leaf_alloc"."max_id"`
}

func validateSeed(tag string, next, step int64) error {
	switch n := utf8.RuneCountInString(tag); {
	case n == 0 || n > maxTagLen || !utf8.ValidString(tag):
		return fmt.Errorf("%w: the tag %.128q must be UTF-8 text of 1 to %d characters, and has %d", ErrSeed, tag, maxTagLen, n)
	case next < 1:
		return fmt.Errorf("%w tag %q: next must be 1 or above, not %d", ErrSeed, tag, next)
	case step < 1 || step > math.MaxInt32:
		return fmt.Errorf("%w tag %q: step must be from 1 to %d, not %d", ErrSeed, tag, math.MaxInt32, step)
	}
	return nil
}
