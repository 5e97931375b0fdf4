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
// table in memory. Processes write rows with one value. Each of their statements is one
// step; a statement that waits for a lock has no step until the lock is free. The test tries
// all orders of the steps. It may kill a process after any step; that rolls its transaction
// back.

// mutant switches rules of the protocol off, to show the purpose of each.
type mutant struct {
	noWait       bool // the read of the owner's row does not wait for transactions
	blind        bool // no process reads the owner's row
	noClaim      bool // an entry is replaced and removed although others rely on it since
	sameClaim    bool // a process that relies on an existing entry does not change its claim
	reserveFirst bool // the entry is made before the row is written
	commitFirst  bool // the row is committed before the entry is made
	releaseFirst bool // the entry is removed before the row is
}

// row is a row that may exist on a shard. Rows of one key are in one table.
type row struct {
	key     int64
	there   bool
	holder  int  // 1 + the process whose transaction has its lock
	becomes bool // exists after that transaction's commit
}

type model struct {
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
	model *model
	id    int
	yield func(step) bool
	next  func() (step, bool)
	stop  func()
	step  step
	state string // running, ended or killed
	trace strings.Builder
	claim int64
	empty bool // of a reader: at some time since it began no row existed
}

// step is a statement that may have to wait.
type step struct {
	ready func() bool
	do    func()
}

var errKilled = errors.New("killed")

// run waits until the test chooses the process, and records the result of its step.
func run[T any](p *process, ready func() bool, do func() T) T {
	var answer T
	if !p.yield(step{ready, func() { answer = do(); _, _ = fmt.Fprint(&p.trace, answer, ";") }}) {
		panic(errKilled)
	}
	return answer
}

func always() bool { return true }

var errTaken = errors.New("duplicate entry")

// is returns the identity of an entry as a condition: of a unique lookup the value, of which
// the model has one.
func (w *model) is(e owner.Entry) func(owner.Entry) bool {
	return func(other owner.Entry) bool { return w.unique || other.Key == e.Key }
}

func (p *process) Insert(_ context.Context, entries []owner.Entry) (int64, error) {
	return run(p, always, func() (added int64) {
		for _, e := range entries {
			if !slices.ContainsFunc(p.model.entries, p.model.is(e)) {
				p.model.entries = append(p.model.entries, e)
				added++
			}
		}
		return added
	}), nil
}

func (p *process) Claims(context.Context, []owner.Entry) ([]int64, error) {
	return run(p, always, func() (claims []int64) {
		for _, e := range p.model.entries {
			claims = append(claims, e.Claim)
		}
		return claims
	}), nil
}

func (p *process) Find(_ context.Context, in owner.Entry) (owner.Entry, bool, error) {
	found := run(p, always, func() *owner.Entry {
		if i := slices.IndexFunc(p.model.entries, p.model.is(in)); i >= 0 {
			e := p.model.entries[i]
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

// as returns the index of an entry that is still equal to old.
func (p *process) as(old owner.Entry) int {
	return slices.IndexFunc(p.model.entries, func(e owner.Entry) bool {
		return e == old || p.model.noClaim && p.model.is(old)(e)
	})
}

func (p *process) Replace(_ context.Context, old, by owner.Entry) (bool, error) {
	return run(p, always, func() bool {
		i := p.as(old)
		if i < 0 {
			return false
		}
		if p.model.sameClaim && old.Key == by.Key {
			return true
		}
		p.model.entries[i] = by
		return true
	}), nil
}

func (p *process) Delete(_ context.Context, old owner.Entry) (bool, error) {
	return run(p, always, func() bool {
		i := p.as(old)
		if i < 0 {
			return false
		}
		p.model.entries = slices.Delete(p.model.entries, i, i+1)
		return true
	}), nil
}

func (p *process) Has(_ context.Context, e owner.Entry) (bool, error) {
	w := p.model
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

// write executes a statement on a row, and reports whether it changed the row. It waits for
// the row lock.
func (p *process) write(at int, there bool) bool {
	r := &p.model.rows[at]
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

// settle ends the transaction of a process, and checks what must hold at that moment.
func (p *process) settle(commit bool) {
	w := p.model
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
	return owner.Entry{Value: "v", Key: p.model.rows[at].key, Claim: int64(p.id)*10 + p.claim}
}

// inserts is a process that inserts a row.
func inserts(at int) func(*process) {
	return func(p *process) {
		e := p.entry(at)
		reserve := func() bool { return owner.Reserve(context.Background(), p, []owner.Entry{e}, nil) == nil }
		if p.model.reserveFirst && !reserve() {
			return
		}
		if !p.write(at, true) {
			return
		}
		if p.model.commitFirst {
			p.end(true)
			reserve()
			return
		}
		if !p.model.reserveFirst && !reserve() {
			p.end(false)
			_, _ = owner.Release(context.Background(), p, e)
			return
		}
		p.end(true)
	}
}

// deletes is a process that deletes the first row.
func deletes(p *process) {
	e := p.entry(0)
	if !p.write(0, false) {
		return
	}
	if p.model.releaseFirst {
		p.model.entries = slices.DeleteFunc(p.model.entries, p.model.is(e))
	}
	p.end(true)
	_, _ = owner.Release(context.Background(), p, e)
}

// reads is a process that reads the row of the value by its entry.
func reads(p *process) {
	p.empty = p.model.count() == 0
	keys := run(p, always, func() (keys []any) {
		for _, e := range p.model.entries {
			keys = append(keys, e.Key)
		}
		return keys
	})
	for _, key := range keys {
		if run(p, always, func() bool {
			return slices.ContainsFunc(p.model.rows, func(r row) bool { return r.there && r.key == key })
		}) {
			return
		}
	}
	if !p.empty && p.model.unique {
		p.model.broken = "a reader found no row, though there was one all the time"
	}
}

// fills is a process that enters an existing row, as Build does.
func fills(at int) func(*process) {
	return func(p *process) {
		if !run(p, always, func() bool { return p.model.rows[at].there }) {
			return
		}
		twice, _ := owner.Fill(context.Background(), p, []owner.Entry{p.entry(at)})
		for _, e := range twice {
			p.model.told = append(p.model.told, e.Key.(int64))
		}
	}
}

func (w *model) count() (n int) {
	for _, r := range w.rows {
		if r.there {
			n++
		}
	}
	return n
}

// check searches for states that must never occur.
func (w *model) check(s scenario) {
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

// scenario is the initial state, and the processes.
type scenario struct {
	name     string
	unique   bool
	building bool
	rows     []row
	entries  []owner.Entry
	programs []func(*process)
}

func start(s scenario, m mutant, kills int) *model {
	w := &model{mutant: m, unique: s.unique, rows: slices.Clone(s.rows), entries: slices.Clone(s.entries), kills: kills}
	for i, program := range s.programs {
		p := &process{model: w, id: i + 1, state: "running"}
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

// choices returns the processes that can continue; -n kills the n-th.
func (w *model) choices() (all []int) {
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

func (w *model) choose(choice int) {
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

// key is equal for states of the model that have equal successors.
func (w *model) key() string {
	var b strings.Builder
	_, _ = fmt.Fprint(&b, w.rows, w.entries, w.told, w.kills)
	for _, p := range w.procs {
		_, _ = fmt.Fprint(&b, p.state, p.empty, p.trace.String(), "|")
	}
	return b.String()
}

// explore tries every order. It returns the first order that breaks a rule, or "".
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
		if s.building { // a killed process that fills begins again
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
