// SPDX-License-Identifier: Apache-2.0

package export

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

// CheckVitessRows reads the router's tables and refuses those with rows that would be lost under
// the VSchema of [Vitess]. Under reverse_bits Vitess gives a negative number and a NULL no shard,
// so a SELECT by such a key finds nothing and returns no error. A stored slot must be one of the
// slots of its physical table.
//
// It queries negative values and NULLs of a column, and stored slots in groups. An index on the
// column makes that fast; without one it reads each table completely. It may run concurrently with
// other callers, and changes nothing. schema.Doctor checks whether rows are where their keys lead.
//
// The error joins a [RefusedError] for each physical table, and the errors of databases that could
// not be read.
func CheckVitessRows(ctx context.Context, r *sharding.Router, c VitessConfig) error {
	all := layouts(r)
	if err := c.withDefaults().validate(all); err != nil {
		return err
	}
	var errs []error
	for _, l := range all {
		bucket, stored := c.Buckets[l.Name]
		for _, target := range l.distinct() {
			look := tableCheck{layout: l, at: target, db: r.DB(target.DB)}
			server, err := dialect.Detect(ctx, look.db)
			if err != nil {
				errs = append(errs, look.failed(err))
				continue
			}
			look.server = server
			if stored {
				errs = append(errs, look.slots(ctx, bucket))
			} else {
				errs = append(errs, look.keys(ctx))
			}
		}
	}
	return errors.Join(errs...)
}

// tableCheck is the check of one physical table.
type tableCheck struct {
	layout

	at     sharding.Target
	db     *sql.DB
	server dialect.Dialect
}

func (l tableCheck) failed(err error) error {
	return fmt.Errorf("export: vitess: the rows of %s cannot be read: %w", l.at, err)
}

// keys refuses keys to which the vindex gives no shard.
func (l tableCheck) keys(ctx context.Context) error {
	name, _, err := functional(l.layout)
	if err != nil {
		return err
	}
	key := l.server.Quote(l.Key)
	var nulls int64
	if err := l.one(ctx, "SELECT COUNT(*) FROM %s WHERE "+key+" IS NULL", &nulls); err != nil {
		return err
	}
	if nulls > 0 {
		return l.refuse(fmt.Sprintf("%s has %d rows whose %s is NULL: Vitess finds no row by a NULL, nor does this router", l.at, nulls, l.Key),
			"give these rows a "+l.Key+", or delete them")
	}
	if name != reverseBits {
		return nil
	}
	var below int64
	var lowest sql.NullString
	if err := l.one(ctx, "SELECT COUNT(*), MIN("+key+") FROM %s WHERE "+key+" < 0", &below, &lowest); err != nil || below == 0 {
		return err
	}
	return l.refuse(
		fmt.Sprintf("%s has %d rows whose %s is negative (%s is the lowest), and the vindex reverse_bits gives negative numbers no shard: Vitess would find none of these rows by its key, and report no error",
			l.at, below, l.Key, lowest.String),
		useBucket+", or give these rows keys that are 0 or above")
}

// slots refuses stored slots that are not the target's.
func (l tableCheck) slots(ctx context.Context, column string) (err error) {
	mine := map[string]bool{}
	for slot, target := range slotTargets(l.Table) {
		if target == l.at {
			mine[strconv.Itoa(slot)] = true
		}
	}
	quoted := l.server.Quote(column)
	rows, err := l.db.QueryContext(ctx, fmt.Sprintf("SELECT %s, COUNT(*) FROM %s GROUP BY %[1]s", quoted, l.server.Quote(l.at.Table)))
	if err != nil {
		return l.failed(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var wrong []string
	for rows.Next() {
		var slot sql.NullString
		var count int64
		if err := rows.Scan(&slot, &count); err != nil {
			return l.failed(err)
		}
		if !slot.Valid {
			slot.String = "NULL"
		}
		if !mine[slot.String] {
			wrong = append(wrong, fmt.Sprintf("%s (%d rows)", slot.String, count))
		}
	}
	if err := rows.Err(); err != nil {
		return l.failed(err)
	}
	if len(wrong) == 0 {
		return nil
	}
	shown := strings.Join(wrong[:min(3, len(wrong))], ", ")
	return l.refuse(
		fmt.Sprintf("%s has rows whose %s is no slot of that table: %s; Vitess would search for them on another shard", l.at, column, shown),
		"set "+column+" to the slot that the rule gives the row's "+l.Key)
}

func (l tableCheck) one(ctx context.Context, query string, into ...any) error {
	if err := l.db.QueryRowContext(ctx, fmt.Sprintf(query, l.server.Quote(l.at.Table))).Scan(into...); err != nil {
		return l.failed(err)
	}
	return nil
}
