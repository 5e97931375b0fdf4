package sqlstore

import (
	"context"
	"database/sql"
	"strings"
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

const (
	readNamespace = `SELECT "namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us"
		FROM "worker_namespace" WHERE "namespace" IN ('', ?)`
	addNamespace = `INSERT INTO "worker_namespace" ("namespace", "epoch_us", "unit_ns", "identity", "longest_us", "safe_from_us")
		VALUES (?, ?, ?, ?, ?, ?)`
	noteServer = `UPDATE "worker_namespace" SET "identity" = ?, "longest_us" = ?, "safe_from_us" = ?
		WHERE "namespace" = '' AND "identity" = ? AND "longest_us" = ? AND "safe_from_us" = ?`
)

// namespace reads the header and how the ticks of a namespace are counted, nil
// when it is new.
func (s session) namespace(ctx context.Context, name string) (h header, t *ticks, err error) {
	err = s.each(ctx, func(rows *sql.Rows) error {
		var read string
		var epoch, unit int64
		row := header{found: true}
		if err := rows.Scan(&read, &epoch, &unit, &row.identity, &row.longest, &row.safeFrom); err != nil {
			return err
		}
		if read == "" {
			h = row
		} else {
			t = &ticks{epoch, unit / 1000}
		}
		return nil
	}, readNamespace, name)
	return h, t, err
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
	text := due.text
	switch {
	case !strings.HasPrefix(text, "INSERT"):
	case s.server.Name() == mysqlName:
		text += ` ON DUPLICATE KEY UPDATE "namespace" = "namespace"`
	default:
		text += " ON CONFLICT DO NOTHING"
	}
	return s.alone(ctx, text, due.args...)
}
