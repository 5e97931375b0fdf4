package sqlxhook

import (
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/sqltext"
	"github.com/shardid/shardid/sharding"
)

// expanded is a statement as it is sent with a binding.
type expanded struct {
	text    string
	sharded []*sharding.Table // that it names, each once
	inserts *sharding.Table   // of them, the one that it inserts into
	writes  string            // the broadcast table that it writes, if any
}

// expand exchanges the logical names of tables in a query for the physical ones
// of b, and refuses what b may not do. A nil b lets everything be.
func (h *Hook) expand(b *binding, query string, f family) (expanded, error) {
	x := expanded{text: query}
	if b == nil {
		return x, nil
	}
	n := naming{binding: b, family: f}
	text, err := sqltext.Rename(query, f.guardReadings(query), n.rename)
	switch {
	case n.err != nil:
		return x, n.err
	case err != nil:
		return x, &sharding.RouteError{Op: "statement", Err: sharding.ErrRawTable, Hint: err.Error()}
	case len(n.tables)+len(n.broadcast) == 0:
		return x, nil
	}
	if sqltext.Versioned(query, f.guardReadings(query)) {
		return x, &sharding.RouteError{Op: "statement", Err: sharding.ErrRawTable, Hint: sqltext.VersionedHint}
	}
	x.text, x.sharded = text, n.tables
	if err := n.judge(&x, query); err != nil {
		return x, err
	}
	if x.writes != "" && b != b.layout.everywhere {
		return x, &sharding.RouteError{
			Op: "write to broadcast table", Table: x.writes, Err: oneCopyError{},
			Hint: "send it with the handle of Hook.Shards, which does it in every database",
		}
	}
	return x, nil
}

// naming collects the tables that a statement names.
type naming struct {
	*binding
	family    family
	tables    []*sharding.Table
	broadcast []string
	err       error // the first refusal
}

// rename is what a table is called on the shard, quoted; false for what keeps its
// name.
func (n *naming) rename(name string) (string, bool) {
	l := n.layout
	t, logical := l.snapshot.Lookup(name)
	switch {
	case logical && n.binding == l.nowhere, !logical && n.isForeign(name):
		n.refuse(t, name)
		return "", true
	case logical && n.binding == l.everywhere:
		n.name(t)
		return "", false
	case logical:
		return n.physical(t)
	case l.snapshot.IsBroadcast(name):
		n.broadcast = append(n.broadcast, name)
	case l.physical[strings.ToLower(name)]:
		t, _ = n.table(name)
		n.name(t)
	}
	return "", false
}

// isForeign reports whether name is a physical table, and none of n's own.
func (n *naming) isForeign(name string) bool {
	return n.layout.physical[strings.ToLower(name)] && !n.owns(name)
}

func (n *naming) physical(t *sharding.Table) (string, bool) {
	name, here := n.binding.tables[strings.ToLower(t.Name)]
	if !here {
		n.refuse(t, t.Name)
		return "", true
	}
	n.name(t)
	quoted, err := n.family.quote(name)
	if err != nil && n.err == nil {
		n.err = err
	}
	return quoted, true
}

func (n *naming) name(t *sharding.Table) {
	if !slices.Contains(n.tables, t) {
		n.tables = append(n.tables, t)
	}
}

// refuse refuses a table that n may not name.
func (n *naming) refuse(t *sharding.Table, name string) {
	if n.err != nil {
		return
	}
	r := &sharding.RouteError{Op: "statement", Table: name, Err: sharding.ErrRawTable}
	switch {
	case n.binding != n.layout.nowhere && n.binding != n.layout.everywhere:
		r.Err, r.Hint = sharding.ErrCrossShard, "the handle is bound to "+n.target.String()+"; take one for each shard, or put the tables into one Group"
	case t == nil:
		r.Hint = "it is the table of one shard; send the statement with a handle of Hook.For, Hook.Begin or GroupBy"
	default:
		r.Hint = "send it with a handle of Hook.For, Hook.Begin or GroupBy, which is bound to a shard"
	}
	n.err = r
}

func refusal(t *sharding.Table, err error, hint string) *sharding.RouteError {
	return &sharding.RouteError{Op: "statement", Table: t.Name, Err: err, Hint: hint}
}
