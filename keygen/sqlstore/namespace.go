// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// header is the row of worker_namespace without a name, which describes the whole ledger.
// Identity is the server's at the last check, longest the longest term so far in microseconds.
// All ceilings that a fail-over lost lie before safeFrom, in microseconds since 1970. Each
// fail-over raises safeFrom, so its value also identifies the fail-over: the era.
type header struct {
	found    bool
	identity string
	longest  int64
	safeFrom int64
}

// namespaceRow is the row of a namespace. Its column longest_us stores how many rows of
// worker_lease the namespace had.
type namespaceRow struct {
	layout   string // the fingerprint; "" if a version wrote the row that stored none
	changing bool   // a change of the layout is under way, and no process takes a lease
	fenced   bool   // versions that store no layout refuse the row
	ticks    ticks  // the unit and epoch of the ceilings
	floor    int64  // µs since 1970; no lease begins earlier
	rows     int64  // how many rows of worker_lease were there; 0 if a version wrote the row that stored none
}

// newNamespaceRow decodes a row. A minus before the layout means that it is being changed. A
// negative unit makes versions that compare only epoch and unit refuse the row.
func newNamespaceRow(layout string, epoch, unit, floor, rows int64) *namespaceRow {
	sp := &namespaceRow{fenced: unit < 0, ticks: ticks{epoch, max(unit, -unit) / 1000}, floor: floor, rows: rows}
	sp.layout, sp.changing = strings.CutPrefix(layout, changing)
	return sp
}

const changing = "-"

// text is the value of the row's column layout.
func (sp namespaceRow) text() string {
	if sp.changing {
		return changing + sp.layout
	}
	return sp.layout
}

// addLayout upgrades a table of an earlier version.
const addLayout = `ALTER TABLE worker_namespace ADD COLUMN layout VARCHAR(255) NOT NULL DEFAULT ''`

// The columns are qualified by their table, because SQLite treats a quoted name of a missing
// column as a string otherwise.
const (
	readNamespace = `SELECT "n"."namespace", "n"."epoch_us", "n"."unit_ns", "n"."identity", "n"."longest_us", "n"."safe_from_us", "n"."layout"
		FROM "worker_namespace" AS "n" WHERE "n"."namespace" IN ('', ?)`
	addNamespace = `INSERT INTO "worker_namespace" ("namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us")
		VALUES (?, ?, ?, ?, ?, ?)`
	updateServer = `UPDATE "worker_namespace" SET "identity" = ?, "longest_us" = ?, "safe_from_us" = ?
		WHERE "namespace" = '' AND "identity" = ? AND "longest_us" = ? AND "safe_from_us" = ?`
)

// namespace reads the header and the row of a namespace, nil when it is new.
func (s session) namespace(ctx context.Context, name string) (h header, sp *namespaceRow, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var read, layout string
		var epoch, unit int64
		row := header{found: true}
		if err := rows.Scan(&read, &epoch, &unit, &row.identity, &row.longest, &row.safeFrom, &layout); err != nil {
			return err
		}
		if read == "" {
			h = row
		} else {
			sp = newNamespaceRow(layout, epoch, unit, row.safeFrom, row.longest)
		}
		return nil
	}, readNamespace, name)
	if dialect.FaultOf(err) == dialect.NoColumn {
		err = &keygen.SetupError{Err: err, Cure: "the table is of an earlier version; call schema.Apply, or run " + addLayout}
	}
	return h, sp, err
}

// lostTerms is the number of terms above the present of another server at which no ceiling of
// the lost server can lie: a ceiling was one term above the lost server's clock, and that clock
// may have been ahead by another term.
const lostTerms = 2

// due returns the statement that must update the header before a lease of this term may be
// granted, or nil. The statement compares the row with what was read, so only one of several
// processes changes it.
func (h header) due(p present, term int64) *statement {
	next := header{true, p.identity, max(h.longest, term), h.safeFrom}
	switch {
	case !h.found: // the row was lost, and the stored identity with it
		next.safeFrom = p.micros + lostTerms*next.longest
		return &statement{addNamespace, []any{"", 0, 0, next.identity, next.longest, next.safeFrom}}
	case !p.isServer(h.identity):
		next.safeFrom = max(p.micros+lostTerms*next.longest, h.safeFrom+1)
	case h.identity == p.node && h.longest > 0:
		next.identity = h.identity // processes of releases that detect no clusters would treat the cluster as another server
	}
	if h == next {
		return nil
	}
	return &statement{updateServer, []any{next.identity, next.longest, next.safeFrom, h.identity, h.longest, h.safeFrom}}
}

// statement is a statement that commits by itself before the transaction that requires it is
// retried.
type statement struct {
	text string
	args []any
}

// make runs a statement by itself. An INSERT has no effect if another process inserted the row
// first.
func (s session) make(ctx context.Context, due *statement) error {
	return s.execCommitted(ctx, s.ignoreExisting(due.text), due.args...)
}

// ignoreExisting makes an INSERT skip rows that exist.
func (s session) ignoreExisting(text string) string {
	switch {
	case !strings.HasPrefix(text, "INSERT"):
		return text
	case s.server.Name() == mysqlName:
		return text + ` ON DUPLICATE KEY UPDATE "namespace" = "namespace"`
	}
	return text + " ON CONFLICT DO NOTHING"
}
