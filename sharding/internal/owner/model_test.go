// SPDX-License-Identifier: Apache-2.0

package owner_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding/internal/owner"
)

// The model is the protocol itself, Reserve, Fill and Release, over shards and a lookup
// table in memory. Processes write rows with one value; each of their statements is one
// step, and one that has to wait for a lock has none until it is free. All orders of the
// steps are tried, and a process may be killed behind any of them: its transaction is
// rolled back then.

// mutant switches rules of the protocol off, to show what each is for.
type mutant struct {
	noWait       bool // the look for the owner's row does not wait for transactions
	blind        bool // nobody looks for the owner's row
	noClaim      bool // an entry is replaced and removed though others rely on it since
	sameClaim    bool // who relies on an entry that is there leaves its claim
	reserveFirst bool // the entry is made before the row is written
	commitFirst  bool // the row is committed before the entry is made
	releaseFirst bool // the entry is removed before the row is
}

// row is one that may be on a shard. Rows of one key are in one table.
type row struct {
	key     int64
	there   bool
	holder  int  // 1 + the process whose transaction has its lock
	becomes bool // there, when that commits
}

type world struct {
	mutant
	unique  bool
	rows    []row
	entries []owner.Entry
	procs   []*process
	told    []int64 // keys that Fill has told
	kills   int
	broken  string
}

// process is a program of which each step is chosen by the test.
type process struct {
	world *world
	id    int
	yield func(step) bool
	next  func() (step, bool)
	stop  func()
	step  step
	state string // running, ended or killed
	trace strings.Builder
	claim int64
	empty bool // of a reader: at some time since it began there was no row
}

// step is a statement that may have to wait.
type step struct {
	ready func() bool
	do    func()
}

var errKilled = errors.New("killed")

// run waits for the turn of the process, and notes what its step has answered.
func run[T any](p *process, ready func() bool, do func() T) T {
	var answer T
	if !p.yield(step{ready, func() { answer = do(); _, _ = fmt.Fprint(&p.trace, answer, ";") }}) {
		panic(errKilled)
	}
	return answer
}

func always() bool { return true }

var errTaken = errors.New("duplicate entry")

// is says of a unique lookup that an entry is told by its value, of which there is one.
func (w *world) is(e owner.Entry) func(owner.Entry) bool {
	return func(other owner.Entry) bool { return w.unique || other.Key == e.Key }
}

func (p *process) Insert(_ context.Context, entries []owner.Entry) (int64, error) {
	return run(p, always, func() (added int64) {
		for _, e := range entries {
			if !slices.ContainsFunc(p.world.entries, p.world.is(e)) {
				p.world.entries = append(p.world.entries, e)
				added++
			}
		}
		return added
	}), nil
}

func (p *process) Claims(context.Context, []owner.Entry) ([]int64, error) {
	return run(p, always, func() (claims []int64) {
		for _, e := range p.world.entries {
			claims = append(claims, e.Claim)
		}
		return claims
	}), nil
}

func (p *process) Find(_ context.Context, in owner.Entry) (owner.Entry, bool, error) {
	found := run(p, always, func() *owner.Entry {
		if i := slices.IndexFunc(p.world.entries, p.world.is(in)); i >= 0 {
			e := p.world.entries[i]
			return &e
		}
		return nil
	})
	if found == nil {
		return owner.Entry{}, false, nil
	}
	_, _ = fmt.Fprint(&p.trace, *found)
	return *found, true, nil
}

// as returns the place of an entry that is as it was.
func (p *process) as(old owner.Entry) int {
	return slices.IndexFunc(p.world.entries, func(e owner.Entry) bool {
		return e == old || p.world.noClaim && p.world.is(old)(e)
	})
}

func (p *process) Replace(_ context.Context, old, by owner.Entry) (bool, error) {
	return run(p, always, func() bool {
		i := p.as(old)
		if i < 0 {
			return false
		}
		if p.world.sameClaim && old.Key == by.Key {
			return true
		}
		p.world.entries[i] = by
		return true
	}), nil
}

func (p *process) Delete(_ context.Context, old owner.Entry) (bool, error) {
	return run(p, always, func() bool {
		i := p.as(old)
		if i < 0 {
			return false
		}
		p.world.entries = slices.Delete(p.world.entries, i, i+1)
		return true
	}), nil
}

func (p *process) Has(_ context.Context, e owner.Entry) (bool, error) {
	w := p.world
	if w.blind {
		return false, nil
	}
	of := func(r row) bool { return r.key == e.Key }
	free := func() bool {
		return w.noWait || !slices.ContainsFunc(w.rows, func(r row) bool { return of(r) && r.holder != 0 && r.holder != p.id })
	}
	return run(p, free, func() bool { return slices.ContainsFunc(w.rows, func(r row) bool { return of(r) && r.there }) }), nil
}

func (*process) Together(a, b any) (bool, error) { return a == b, nil }

func (p *process) Duplicate(_ context.Context, e owner.Entry) error {
	if added, _ := p.Insert(context.Background(), []owner.Entry{e}); added == 1 {
		return nil
	}
	return errTaken
}

// write executes a statement on a row, and reports whether it did anything. It waits for
// the lock of the row.
func (p *process) write(at int, there bool) bool {
	r := &p.world.rows[at]
	return run(p, func() bool { return r.holder == 0 }, func() bool {
		if r.there == there {
			return false // a duplicate, or nothing to delete
		}
		r.holder, r.becomes = p.id, there
		return true
	})
}

func (p *process) end(commit bool) {
	run(p, always, func() string { p.settle(commit); return "" })
}

// settle ends the transaction of a process, and checks what must hold when it does.
func (p *process) settle(commit bool) {
	w := p.world
	for i := range w.rows {
		if r := &w.rows[i]; r.holder == p.id {
			if r.holder = 0; commit {
				r.there = r.becomes
			}
		}
	}
}

func (p *process) entry(at int) owner.Entry {
	p.claim++
	return owner.Entry{Value: "v", Key: p.world.rows[at].key, Claim: int64(p.id)*10 + p.claim}
}

// inserts is a writer of a row.
func inserts(at int) func(*process) {
	return func(p *process) {
		e := p.entry(at)
		reserve := func() bool { return owner.Reserve(context.Background(), p, []owner.Entry{e}) == nil }
		if p.world.reserveFirst && !reserve() {
			return
		}
		if !p.write(at, true) {
			return
		}
		if p.world.commitFirst {
			p.end(true)
			reserve()
			return
		}
		if !p.world.reserveFirst && !reserve() {
			p.end(false)
			_, _ = owner.Release(context.Background(), p, e)
			return
		}
		p.end(true)
	}
}

// deletes is a writer that deletes the first row.
func deletes(p *process) {
	e := p.entry(0)
	if !p.write(0, false) {
		return
	}
	if p.world.releaseFirst {
		p.world.entries = slices.DeleteFunc(p.world.entries, p.world.is(e))
	}
	p.end(true)
	_, _ = owner.Release(context.Background(), p, e)
}

// reads is a reader: the row of the value, by way of the entry.
func reads(p *process) {
	p.empty = p.world.count() == 0
	keys := run(p, always, func() (keys []any) {
		for _, e := range p.world.entries {
			keys = append(keys, e.Key)
		}
		return keys
	})
	for _, key := range keys {
		if run(p, always, func() bool {
			return slices.ContainsFunc(p.world.rows, func(r row) bool { return r.there && r.key == key })
		}) {
			return
		}
	}
	if !p.empty && p.world.unique {
		p.world.broken = "a reader found no row, though there was one all the time"
	}
}

// fills enters a row that is there, as Build does.
func fills(at int) func(*process) {
	return func(p *process) {
		if !run(p, always, func() bool { return p.world.rows[at].there }) {
			return
		}
		twice, _ := owner.Fill(context.Background(), p, []owner.Entry{p.entry(at)})
		for _, e := range twice {
			p.world.told = append(p.world.told, e.Key.(int64))
		}
	}
}

func (w *world) count() (n int) {
	for _, r := range w.rows {
		if r.there {
			n++
		}
	}
	return n
}

// check looks for what must never be.
func (w *world) check(s scenario) {
	if w.unique && !s.building && w.count() > 1 {
		w.broken = "two rows have one value"
	}
	over := !slices.ContainsFunc(w.procs, func(p *process) bool { return p.state != "ended" })
	for _, r := range w.rows {
		has := slices.ContainsFunc(w.entries, func(e owner.Entry) bool { return e.Key == r.key })
		if r.there && !has && (!s.building || over && !slices.Contains(w.told, r.key)) {
			w.broken = "a row has no entry"
		}
	}
	for _, p := range w.procs {
		p.empty = p.empty || w.count() == 0
	}
}

// scenario is what there is at first, and who does what.
type scenario struct {
	name     string
	unique   bool
	building bool
	rows     []row
	entries  []owner.Entry
	programs []func(*process)
}

func start(s scenario, m mutant, kills int) *world {
	w := &world{mutant: m, unique: s.unique, rows: slices.Clone(s.rows), entries: slices.Clone(s.entries), kills: kills}
	for i, program := range s.programs {
		p := &process{world: w, id: i + 1, state: "running"}
		p.next, p.stop = iter.Pull(func(yield func(step) bool) {
			defer func() {
				if r := recover(); r != nil && r != errKilled { //nolint:errorlint // the value itself
					panic(r)
				}
			}()
			p.yield = yield
			program(p)
		})
		w.procs = append(w.procs, p)
		p.proceed()
	}
	return w
}

func (p *process) proceed() {
	var on bool
	if p.step, on = p.next(); !on {
		p.state = "ended"
	}
}

// choices are the processes that can go on; -n kills the n-th.
func (w *world) choices() (all []int) {
	for _, p := range w.procs {
		if p.state != "running" {
			continue
		}
		if p.step.ready() {
			all = append(all, p.id)
		}
		if w.kills > 0 {
			all = append(all, -p.id)
		}
	}
	return all
}

func (w *world) choose(choice int) {
	if choice > 0 {
		p := w.procs[choice-1]
		p.step.do()
		p.proceed()
		return
	}
	p := w.procs[-choice-1]
	w.kills--
	p.stop()
	p.state = "killed"
	p.settle(false)
}

// key tells worlds apart from which other ones follow.
func (w *world) key() string {
	var b strings.Builder
	_, _ = fmt.Fprint(&b, w.rows, w.entries, w.told, w.kills)
	for _, p := range w.procs {
		_, _ = fmt.Fprint(&b, p.state, p.empty, p.trace.String(), "|")
	}
	return b.String()
}

// explore tries every order, and returns the first that breaks something, or "".
func explore(s scenario, m mutant, kills int) string {
	seen := map[string]bool{}
	var path []int
	var visit func() string
	visit = func() string {
		w := start(s, m, kills)
		defer func() {
			for _, p := range w.procs {
				p.stop()
			}
		}()
		w.check(s)
		for _, choice := range path {
			w.choose(choice)
			w.check(s)
		}
		key := w.key()
		if w.broken != "" {
			return fmt.Sprintf("%s: %v: %s", s.name, path, w.broken)
		}
		if seen[key] {
			return ""
		}
		seen[key] = true
		choices := w.choices()
		if len(choices) == 0 && slices.ContainsFunc(w.procs, func(p *process) bool { return p.state == "running" }) {
			return fmt.Sprintf("%s: %v: all wait for each other", s.name, path)
		}
		for _, choice := range choices {
			path = append(path, choice)
			if broken := visit(); broken != "" {
				return broken
			}
			path = path[:len(path)-1]
		}
		return ""
	}
	return visit()
}

func scenarios() []scenario {
	there, absent := row{key: 1, there: true}, row{key: 1}
	other := row{key: 2}
	entry := owner.Entry{Value: "v", Key: int64(1), Claim: 1}
	return []scenario{
		{"two want one value", true, false, []row{absent, other}, nil, []func(*process){inserts(0), inserts(1), reads}},
		{"two want one value that an entry is left of", true, false, []row{absent, other}, []owner.Entry{entry}, []func(*process){inserts(0), inserts(1)}},
		{"a value goes from one to another", true, false, []row{there, other}, []owner.Entry{entry}, []func(*process){deletes, inserts(1), reads}},
		{"a value comes back", true, false, []row{there}, []owner.Entry{entry}, []func(*process){deletes, inserts(0), reads}},
		{"a value comes back, or goes to another", true, false, []row{there, other}, []owner.Entry{entry}, []func(*process){deletes, inserts(0), inserts(1)}},
		{"three want one value", true, false, []row{absent, other, {key: 3}}, []owner.Entry{entry}, []func(*process){inserts(0), inserts(1), inserts(2)}},
		{"rows of one key share an entry", false, false, []row{there, absent}, []owner.Entry{entry}, []func(*process){deletes, inserts(1), reads}},
		{"rows of one key share an entry that both make", false, false, []row{absent, absent}, nil, []func(*process){inserts(0), inserts(1), deletes}},
		{"a row is entered while it is deleted", true, true, []row{there, other}, nil, []func(*process){fills(0), deletes, inserts(1)}},
		{"a row is entered whose value another one has", true, true, []row{there, other}, nil, []func(*process){fills(0), inserts(1)}},
		{"a row is entered while another one goes", false, true, []row{there, {key: 1, there: true}}, nil, []func(*process){fills(0), fills(1), deletes}},
	}
}

func TestTheProtocolKeepsEveryRow(t *testing.T) {
	for _, s := range scenarios() {
		kills := 1
		if s.building { // who fills begins again
			kills = 0
		}
		if broken := explore(s, mutant{}, kills); broken != "" {
			t.Error(broken)
		}
	}
}

func TestWithoutAnyOneRuleOfTheProtocolARowIsLost(t *testing.T) {
	for name, m := range map[string]mutant{
		"noWait": {noWait: true}, "blind": {blind: true}, "noClaim": {noClaim: true}, "sameClaim": {sameClaim: true},
		"reserveFirst": {reserveFirst: true}, "commitFirst": {commitFirst: true}, "releaseFirst": {releaseFirst: true},
	} {
		found := ""
		for _, s := range scenarios() {
			if broken := explore(s, m, 1); broken != "" && !s.building {
				found = broken
				break
			}
		}
		if t.Logf("%s: %s", name, found); found == "" {
			t.Errorf("without %s nothing is lost", name)
		}
	}
}
