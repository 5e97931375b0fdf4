// SPDX-License-Identifier: Apache-2.0

package sqlxhook

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/shardid/shardid/sharding"
)

// leaveNumbered leaves the key column to the database if that numbers its rows: the source
// of a migration does so as long as it serves t. NULL is sent for the column, or DEFAULT.
func (p *plan) leaveNumbered(t *sharding.Table) {
	o := t.Origin()
	if o == nil || o.Numbered == "" {
		return
	}
	for i := range p.keys {
		k := &p.keys[i]
		if !strings.EqualFold(o.Numbered, k.column) {
			continue
		}
		k.numbered, p.numbered = true, k
		for f := range p.fields {
			if p.fields[f].name == k.column {
				p.fields[f].numbered = &k.typ
			}
		}
		if p.key.database == postgres {
			p.defaults = p.defaulted(k)
		}
	}
}

// defaulted is a statement of one row whose key PostgreSQL makes. PostgreSQL makes the key
// where DEFAULT stands for it; a NULL is stored as it is. Only RETURNING reveals the new
// key.
type defaulted struct {
	text       string
	left       []bool // for each parameter of the group: whether DEFAULT replaces it
	returnsKey bool   // the text ends with RETURNING and the key's column
}

// defaulted returns nil if the key is only a part of a value, as in :id + 1.
func (p *plan) defaulted(k *key) *defaulted {
	group, left := text{parts: []string{p.stmt.group.parts[0]}}, make([]bool, len(p.stmt.group.params))
	for i, param := range p.stmt.group.params {
		last, after := len(group.parts)-1, p.stmt.group.parts[i+1]
		if param != k.column {
			group.params, group.parts = append(group.params, param), append(group.parts, after)
			continue
		}
		if !isWhole(group.parts[last], after) {
			return nil
		}
		left[i] = true
		group.parts[last] += "DEFAULT" + after
	}
	s := *p.stmt
	s.group = group
	returnsKey := k.integer && s.endsWithValues()
	if quoted, err := p.key.database.quote(k.column); err == nil && returnsKey {
		s.tail = text{parts: []string{" RETURNING " + quoted}}
	}
	return &defaulted{s.sql(1, p.key.style), left, returnsKey}
}

// isWhole reports whether a parameter is a value by itself, by the texts before and after it
// in a VALUES group.
func isWhole(before, after string) bool {
	before, after = strings.TrimRight(before, " \t\r\n"), strings.TrimLeft(after, " \t\r\n")
	begins := strings.HasSuffix(before, "(") || strings.HasSuffix(before, ",")
	return begins && (strings.HasPrefix(after, ",") || strings.HasPrefix(after, ")"))
}

// statement returns the text and the arguments for rows[from:to].
func (c *call) statement(from, to int) (string, []any) {
	args := c.args.all
	if c.cuts != nil {
		args = c.args.of(from, to, len(c.plan.group))
	}
	d := c.plan.defaults
	if d == nil || to-from != 1 {
		return c.plan.text(to - from), args
	}
	if empty, err := c.plan.numbered.isEmpty(&c.rows, from); err != nil || !empty {
		return c.plan.text(1), args
	}
	kept := make([]any, 0, len(args))
	for i, arg := range args {
		if of := i - len(c.plan.head); of < 0 || of >= len(d.left) || !d.left[of] {
			kept = append(kept, arg)
		}
	}
	return d.text, kept
}

// returnedKey is the result of an INSERT … RETURNING of one row.
type returnedKey struct{ id, rows int64 }

func (g returnedKey) LastInsertId() (int64, error) { return g.id, nil }
func (g returnedKey) RowsAffected() (int64, error) { return g.rows, nil }

// execReturning sends an INSERT of one row that returns its key.
func execReturning(ctx context.Context, e Execer, query string, args []any) (res Result, err error) {
	q, ok := e.(Queryer)
	if !ok {
		return Result{}, fmt.Errorf("%w: %T sends no queries, and PostgreSQL tells the key that it gave by RETURNING alone; use an *sqlx.DB, *sqlx.Tx or *sqlx.Conn", ErrStatement, e)
	}
	rows, err := q.QueryxContext(ctx, query, args...)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var g returnedKey
	for rows.Next() {
		if err := rows.Scan(&g.id); err != nil {
			return Result{}, err
		}
		g.rows++
	}
	return Result{RowsAffected: g.rows, last: g}, rows.Err()
}

// onePerStatement cuts a batch into statements of one row if the database numbers its rows,
// because no database reports the key of each row of a batch for certain.
func (p *plan) onePerStatement(r *rows) ([]int, error) {
	if p.numbered == nil {
		return nil, nil
	}
	empty, err := p.numbered.empty(r)
	if err == nil && len(empty) > 0 && p.key.database == postgres && p.defaults == nil {
		err = fmt.Errorf("%w: PostgreSQL numbers the column %s where DEFAULT stands for it; have :%[2]s be a value of its own in one VALUES group", ErrStatement, p.numbered.column)
	}
	if err != nil || len(empty) == 0 || r.n == 1 {
		return nil, err
	}
	cuts := make([]int, r.n)
	for i := range cuts {
		cuts[i] = i + 1
	}
	return cuts, nil
}

// storeNumber stores in a row the key that the database made. The field stays empty if the
// key may belong to another row, as after an upsert, or if it does not fit.
func (c *call) storeNumber(row int, res Result) {
	k := c.plan.numbered
	if k == nil || !k.integer || c.rows.n == 0 || res.RowsAffected != 1 || !c.plan.stmt.endsWithValues() {
		return
	}
	v, err := k.field.of(c.rows.at(row))
	if err != nil || !k.typ.IsEmpty(v) || !v.CanSet() {
		return
	}
	id, err := res.last.LastInsertId()
	if err != nil || id <= 0 {
		return
	}
	was := filledKey{key: k, rows: []int{row}, before: []reflect.Value{copyOf(v)}}
	if k.typ.Set(v, id) == nil {
		c.filled.add(was)
	}
}

// endsWithValues reports whether nothing follows the only VALUES group.
func (s *statement) endsWithValues() bool {
	return s.groups == 1 && len(s.tail.params) == 0 && strings.Trim(strings.Join(s.tail.parts, ""), "; \t\r\n") == ""
}
