// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"math"

	"github.com/shardid/shardid/sharding"
)

// Verdict counts the errors that a verification found. All zero is correct.
type Verdict struct {
	Lost       int64 // rows that no shard has with the expected values
	Duplicates int64 // rows that a shard has in addition to the expected one
	Misrouted  int64 // rows on another shard than that of their key, or in another database than their parent
}

// Clean reports whether nothing is wrong.
func (v Verdict) Clean() bool { return v == Verdict{} }

// Shard is a table on a shard, with counted values.
type Shard struct {
	DB       string `json:"db"`
	Table    string `json:"table"`
	Rows     int64  `json:"rows"`
	Checksum uint64 `json:"-"` // the sum over its rows, which must equal the source's
}

// verifier merges the expected rows with those on the shards, all in the order of their
// keys, so that all rows with one key are compared at once.
type verifier struct {
	table  *table
	parent *table
	router *sharding.Router
	add    func(int64)

	expected *feed
	found    []*feed
	wanted   map[sharding.Target]*Shard // expected
	copied   int64                      // rows of the source that are on a shard
	verdict  Verdict
	buf      []byte
}

// verified is the result of the verification of a table.
type verified struct {
	verdict Verdict
	copied  int64
	shards  []Shard
}

// verifyTable compares the rows on the shards with those of the source, including the
// changes in the ledger, and with the new ones, whose keys are higher.
func verifyTable(ctx context.Context, s *source, to *shards, l *ledger, add func(int64)) (v verified, err error) {
	m := &verifier{table: l.table, parent: s.tables[0], router: to.router, add: add, wanted: map[sharding.Target]*Shard{}}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := m.open(ctx, s, to, l); err != nil {
		return v, err
	}
	for {
		key, ok := m.lowest()
		if !ok {
			break
		}
		if err := m.compare(key); err != nil {
			return v, err
		}
	}
	counted, err := m.tally()
	return verified{m.verdict, m.copied, counted}, err
}

func (m *verifier) open(ctx context.Context, s *source, to *shards, l *ledger) error {
	n := len(m.table.columns)
	rows, err := openCursor(ctx, s.tx, n, m.table.selectAll(m.table.name))
	if err != nil {
		return err
	}
	m.expected = &feed{cursor: rows, now: l.now, rest: l.added(), keyAt: m.table.keyAt}
	if err := m.expected.advance(); err != nil {
		return err
	}
	for _, target := range to.router.Targets(m.table.name) {
		rows, err := openCursor(ctx, to.dbs[target.DB], n, m.table.selectAll(target.Table))
		if err != nil {
			return err
		}
		f := &feed{cursor: rows, keyAt: m.table.keyAt, shard: Shard{DB: target.DB, Table: target.Table}}
		m.found = append(m.found, f)
		m.wanted[target] = &Shard{}
		if err := f.advance(); err != nil {
			return err
		}
	}
	return nil
}

func (m *verifier) close() error {
	var errs []error
	for _, f := range append(m.found, m.expected) {
		if f != nil {
			errs = append(errs, f.cursor.close())
		}
	}
	return errors.Join(errs...)
}

// lowest returns the lowest key that has not been compared.
func (m *verifier) lowest() (int64, bool) {
	key, some := m.expected.key()
	for _, f := range m.found {
		if k, ok := f.key(); ok && (!some || k < key) {
			key, some = k, true
		}
	}
	return key, some
}

// compare compares all rows that have the key, and advances past it.
func (m *verifier) compare(key int64) error {
	old := m.expected.at(key) && m.expected.stored
	want, err := m.want(key)
	if err != nil {
		return err
	}
	copies, same := int64(0), false
	for _, f := range m.found {
		if !f.at(key) {
			continue
		}
		copies++
		m.buf = f.count(m.buf[:0])
		same = same || bytes.Equal(m.buf, want)
		if err := m.checkPlace(f); err != nil {
			return err
		}
		if err := f.advance(); err != nil {
			return err
		}
	}
	if want == nil {
		m.verdict.Duplicates += copies
		return nil
	}
	m.verdict.Duplicates += max(0, copies-1)
	if old && copies > 0 {
		m.copied++
	}
	if !same {
		m.verdict.Lost++
	}
	m.add(1)
	return nil
}

// want returns the expected encoded row, nil if there is none.
func (m *verifier) want(key int64) ([]byte, error) {
	if !m.expected.at(key) {
		return nil, nil
	}
	target, err := m.router.Target(m.table.name, m.expected.row[m.table.byAt])
	if err != nil {
		return nil, err
	}
	encoded := encode(make([]byte, 0, 256), m.expected.row)
	m.wanted[target].Rows++
	m.wanted[target].Checksum += checksum(encoded)
	return encoded, m.expected.advance()
}

// checkPlace checks that the row at f is in the shard of its own key, and in the database
// of its parent.
func (m *verifier) checkPlace(f *feed) error {
	by := f.row[m.table.byAt]
	target, err := m.router.Target(m.table.name, by)
	if err != nil { // a row that nobody expects can have any value
		m.verdict.Misrouted++
		return nil //nolint:nilerr // the row is counted
	}
	beside, err := m.router.Target(m.parent.name, by)
	if err != nil {
		return err
	}
	here := sharding.Target{DB: f.shard.DB, Table: f.shard.Table}
	if here != target || here.DB != beside.DB {
		m.verdict.Misrouted++
	}
	return nil
}

// errTally says that the checksums show a difference that the comparison of the rows did
// not find.
var errTally = errors.New("bug: the checksums of a shard differ though its rows are the same")

func (m *verifier) tally() ([]Shard, error) {
	var all []Shard
	for _, f := range m.found {
		want := m.wanted[sharding.Target{DB: f.shard.DB, Table: f.shard.Table}]
		if m.verdict.Clean() && (want.Rows != f.shard.Rows || want.Checksum != f.shard.Checksum) {
			return nil, errTally
		}
		all = append(all, f.shard)
	}
	return all, nil
}

// feed is a sequence of rows in the order of their keys: those of a cursor, then more.
type feed struct {
	cursor *cursor
	now    func([]any) []any // the present state of a row of the cursor; nil for unchanged
	rest   [][]any
	keyAt  int
	row    []any // the next row, nil after the last
	stored bool  // whether the row is from the cursor
	shard  Shard // the numbers so far, for the rows of a shard
}

func (f *feed) advance() (err error) {
	f.row, err = f.cursor.next()
	f.stored = f.row != nil
	switch {
	case err != nil:
	case f.stored && f.now != nil:
		f.row = f.now(f.row)
	case !f.stored && len(f.rest) > 0:
		f.row, f.rest = f.rest[0], f.rest[1:]
	}
	return err
}

func (f *feed) key() (int64, bool) {
	if f.row == nil {
		return math.MaxInt64, false
	}
	return integer(f.row[f.keyAt]), true
}

func (f *feed) at(key int64) bool {
	k, ok := f.key()
	return ok && k == key
}

// count adds the row to the numbers, and appends its encoding to buf.
func (f *feed) count(buf []byte) []byte {
	buf = encode(buf, f.row)
	f.shard.Rows++
	f.shard.Checksum += checksum(buf)
	return buf
}
