package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// header is the row of worker_namespace that has no name and is about the whole
// ledger. Identity is the server's when it was last looked at, longest the longest term
// so far in microseconds. Ceilings that a fail-over lost all lie before
// safeFrom, microseconds since 1970; as each fail-over raises it, it also says
// which of them it was: the era.
type header struct {
	found    bool
	identity string
	longest  int64
	safeFrom int64
}

// space is the row of a namespace: what its leases are about.
type space struct {
	layout   string // the fingerprint; "" of versions that noted none
	changing bool   // nobody takes a lease until the layout is another one
	fenced   bool   // versions that note no layout refuse the row
	ticks    ticks  // of the ceilings
	floor    int64  // µs since 1970, before which no lease begins
}

// newSpace reads a row. A layout with a minus before it is being changed. Where the
// unit is negative, versions that compare epoch and unit alone find another one
// than theirs.
func newSpace(layout string, epoch, unit, floor int64) *space {
	sp := &space{fenced: unit < 0, ticks: ticks{epoch, max(unit, -unit) / 1000}, floor: floor}
	sp.layout, sp.changing = strings.CutPrefix(layout, changing)
	return sp
}

const changing = "-"

// text is what stands in the row's column layout.
func (sp space) text() string {
	if sp.changing {
		return changing + sp.layout
	}
	return sp.layout
}

// addLayout is what brings a table of a version before up to date.
const addLayout = `ALTER TABLE worker_namespace ADD COLUMN layout VARCHAR(255) NOT NULL DEFAULT ''`

// SQLite would take a quoted name for a text where there is no such column, unless
// it is named with its table.
const (
	readNamespace = `SELECT "n"."namespace", "n"."epoch_us", "n"."unit_ns", "n"."identity", "n"."longest_us", "n"."safe_from_us", "n"."layout"
		FROM "worker_namespace" AS "n" WHERE "n"."namespace" IN ('', ?)`
	addNamespace = `INSERT INTO "worker_namespace" ("namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us")
		VALUES (?, ?, ?, ?, ?, ?)`
	noteServer = `UPDATE "worker_namespace" SET "identity" = ?, "longest_us" = ?, "safe_from_us" = ?
		WHERE "namespace" = '' AND "identity" = ? AND "longest_us" = ? AND "safe_from_us" = ?`
)

// namespace reads the header and the row of a namespace, nil when it is new.
func (s session) namespace(ctx context.Context, name string) (h header, sp *space, err error) {
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
			sp = newSpace(layout, epoch, unit, row.safeFrom)
		}
		return nil
	}, readNamespace, name)
	if dialect.FaultOf(err) == dialect.NoColumn {
		err = &keygen.SetupError{Err: err, Cure: "the table is of a version before; call schema.Apply, or run " + addLayout}
	}
	return h, sp, err
}

// lostTerms is how many terms above the present of another server a ceiling may
// lie that was lost: one was written above the lost server's present, and its
// clock may have been ahead by as much.
const lostTerms = 2

// due returns the statement that has to bring the header up to date before a
// lease of this term may be given, or nil. It compares with what was read, so
// that of several processes that find the same only one changes it.
func (h header) due(p present, term int64) *statement {
	next := header{true, p.identity, max(h.longest, term), h.safeFrom}
	switch {
	case !h.found: // it was lost, and with it the identity that it noted
		next.safeFrom = p.micros + lostTerms*next.longest
		return &statement{addNamespace, []any{"", 0, 0, next.identity, next.longest, next.safeFrom}}
	case !p.knows(h.identity):
		next.safeFrom = max(p.micros+lostTerms*next.longest, h.safeFrom+1)
	case h.identity == p.node && h.longest > 0:
		next.identity = h.identity // processes of releases that know no clusters would take the cluster for another server
	}
	if h == next {
		return nil
	}
	return &statement{noteServer, []any{next.identity, next.longest, next.safeFrom, h.identity, h.longest, h.safeFrom}}
}

// statement is one that commits by itself, before the transaction that found it
// necessary is tried again.
type statement struct {
	text string
	args []any
}

// make runs a statement by itself. An INSERT does nothing where another process
// was first.
func (s session) make(ctx context.Context, due *statement) error {
	return s.alone(ctx, s.unlessThere(due.text), due.args...)
}

// unlessThere lets an INSERT pass over rows that are there.
func (s session) unlessThere(text string) string {
	switch {
	case !strings.HasPrefix(text, "INSERT"):
		return text
	case s.server.Name() == mysqlName:
		return text + ` ON DUPLICATE KEY UPDATE "namespace" = "namespace"`
	}
	return text + " ON CONFLICT DO NOTHING"
}
