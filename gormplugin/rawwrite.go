package gormplugin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// rawWrite is a statement in a text that a hint sends to shards. It must change
// rows of sharded tables alone, as any other table is another one in each shard,
// and leave them where they belong.
type rawWrite struct {
	*rawStep
	change

	query  string
	args   []any
	params []int // where parameters begin; nil when they cannot be counted
}

// proveWrites checks what a text changes, in every reading of it.
func (s *rawStep) proveWrites(query string, args []any) error {
	for _, f := range s.routing.guard.readingsOf(query) {
		for _, c := range changesOf(query, f) {
			w := rawWrite{rawStep: s, change: c, query: query, args: args}
			if c.rows != nil {
				w.params = paramsOf(query, f)
			}
			if err := w.prove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// paramsOf returns where the parameters of a text begin, nil when some have names
// or numbers.
func paramsOf(query string, f sqltext.Flavor) []int {
	starts := []int{}
	scanner := sqltext.NewScanner(query, f)
	end := -1
	for t, ok := scanner.Next(); ok; t, ok = scanner.Next() {
		word := t.Text(query)
		switch {
		case t.Kind == sqltext.Named, t.Kind == sqltext.Number && t.Start == end, t.Kind == sqltext.Word && strings.ContainsAny(word[:1], "@$:"):
			return nil
		case t.Kind == sqltext.Param:
			starts, end = append(starts, t.Start), t.End
		}
	}
	return starts
}

func (w *rawWrite) prove() error {
	for _, name := range w.tables {
		t, ok := w.snapshot.Lookup(name)
		switch {
		case !ok && w.routing.guard.isCopied(name):
			return oneCopyOf(w.verb, name)
		case !ok:
			return w.refuse(name, sharding.ErrRawTable, "a hint sends it to shards of a sharded table, and it changes "+name+"; run its subquery first, as a statement of its own")
		case t.Origin() != nil:
			continue // it is whole
		}
		if err := w.proveSettings(t); err != nil {
			return err
		}
		if w.verb == "INSERT" || w.verb == "REPLACE" {
			if err := w.proveRows(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// proveSettings refuses to give rows another place.
func (w *rawWrite) proveSettings(t *sharding.Table) error {
	for _, set := range w.sets {
		if t.Leads(set.column) && !w.keeps(set) {
			return w.refuse(t.Name, sharding.ErrKeyChange, "leave "+set.column+" out of the update; delete the row and create it with the new one")
		}
	}
	return nil
}

// keeps reports whether an assignment is that of a column to itself.
func (w *rawWrite) keeps(set setting) bool {
	value := wording{sql: w.query, tokens: set.value}
	table, column := value.name()
	return value.at == len(value.tokens) && strings.EqualFold(column, set.column) &&
		(table == "" || strings.EqualFold(table, set.table) || slices.Contains(w.tables, table))
}

// proveRows checks that the rows of an INSERT belong where the hint says.
func (w *rawWrite) proveRows(t *sharding.Table) error {
	key := slices.IndexFunc(w.columns, func(name string) bool { return strings.EqualFold(name, t.Key) })
	if key < 0 || len(w.rows) == 0 {
		return w.refuse(t.Name, sharding.ErrMissingKey, "write it as INSERT INTO "+t.Name+" (…, "+t.Key+", …) VALUES (…), so that its rows can be seen, or create them through the model")
	}
	for i, row := range w.rows {
		if len(row) != len(w.columns) {
			return w.refuse(t.Name, sharding.ErrMissingKey, fmt.Sprintf("row %d has not as many values as there are columns", i))
		}
		if err := w.proveRow(t, i, row, key); err != nil {
			return err
		}
	}
	return nil
}

func (w *rawWrite) proveRow(t *sharding.Table, i int, row [][]sqltext.Token, key int) error {
	want, _, err := w.snapshot.Hinted(t.Name, w.hint)
	if err != nil {
		return err
	}
	value, ok := w.value(row[key])
	if !ok {
		return w.refuse(t.Name, sharding.ErrMissingKey, fmt.Sprintf("row %d: the key must be a plain value", i))
	}
	got, err := t.Target(value)
	if err == nil && got != want {
		err = sharding.ErrMisplaced
	}
	if err != nil {
		return w.refuse(t.Name, err, fmt.Sprintf("row %d: the hint says %s; name the row's own shard, or create it through the model", i, want))
	}
	return w.proveGenes(t, i, row, value)
}

// proveGenes checks that the other columns that lead to a shard lead to the row's.
func (w *rawWrite) proveGenes(t *sharding.Table, i int, row [][]sqltext.Token, key any) error {
	own, err := t.Slot(key)
	if err != nil {
		return w.refuse(t.Name, err, "")
	}
	for c, name := range w.columns {
		if !t.Leads(name) || strings.EqualFold(name, t.Key) || len(row[c]) == 1 && row[c][0].Is(w.query, "NULL") {
			continue
		}
		value, ok := w.value(row[c])
		if !ok {
			return w.refuse(t.Name, sharding.ErrMissingKey, fmt.Sprintf("row %d: %s must be a plain value", i, name))
		}
		slot, err := t.SlotBy(name, value)
		if errors.Is(err, sharding.ErrMissingKey) {
			continue // a value from before they carried slots
		}
		if err == nil && slot != own {
			err = sharding.ErrMisplaced
		}
		if err != nil {
			return w.refuse(t.Name, err, fmt.Sprintf("row %d: %s must lead to the slot of %s; make it with Router.NextID", i, name, t.Key))
		}
	}
	return nil
}

// value returns what a parameter, a whole number or a text stands for.
func (w *rawWrite) value(words []sqltext.Token) (any, bool) {
	sign := ""
	if len(words) == 2 && words[0].Is(w.query, "-") {
		sign, words = "-", words[1:]
	}
	if len(words) != 1 {
		return nil, false
	}
	switch t := words[0]; {
	case t.Kind == sqltext.Number:
		n, err := strconv.ParseInt(sign+t.Text(w.query), 10, 64)
		return n, err == nil
	case t.Kind == sqltext.Param && sign == "":
		i, counted := slices.BinarySearch(w.params, t.Start)
		if !counted || i >= len(w.args) || !bound(w.args[i]) {
			return nil, false
		}
		return w.args[i], true
	case t.Kind == sqltext.String && sign == "" && strings.HasPrefix(t.Text(w.query), "'") && !strings.Contains(t.Text(w.query), `\`):
		text := t.Text(w.query)
		return strings.ReplaceAll(text[1:len(text)-1], "''", "'"), true
	}
	return nil, false
}

func (w *rawWrite) refuse(table string, why error, hint string) error {
	return &sharding.RouteError{Op: "raw " + w.verb + " on", Table: table, Err: why, Hint: hint}
}
