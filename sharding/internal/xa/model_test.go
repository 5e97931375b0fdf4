// SPDX-License-Identifier: Apache-2.0

package xa_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/xa"
)

// The model is the protocol itself, Commit and Settle, over databases in memory. Each
// statement of the program and of two resolvers is one step; all orders of the steps are
// tried, and at each step the program may be killed, or the answer of a statement lost.

// mutant switches a rule of the protocol off, to show its purpose.
type mutant struct {
	noRow       bool // a resolver that finds no decision rolls back without making one
	decideFirst bool // the decision is committed before the branches are prepared
	forgetFirst bool // the decision is removed before the branches are committed
	blind       bool // after an unknown COMMIT the program takes it for failed
	forgetSoon  bool // a resolver removes the decision while the program may still ask about it
}

// The states of a branch.
const (
	active = iota
	prepared
	committed
	rolledBack
)

type world struct {
	mutant
	pick func(choices int) int

	branches []int
	first    int    // state of the first participant's own work
	row      string // the decision that is committed: "", "committed" or "aborted"
	noted    bool   // the decision in the first participant's transaction
	alive    bool   // the program
	losses   int    // answers that may still be lost
}

var errLost = errors.New("the connection was lost")

// killed ends the program in the middle of the protocol.
type killed struct{}

// step is a moment at which other processes may act.
func (w *world) step(yield func() bool) {
	if !yield() {
		panic(killed{})
	}
}

type branch struct {
	*world
	n     int
	yield func() bool
}

func (b branch) Prepare(context.Context) error {
	b.step(b.yield)
	if b.world.branches[b.n] == active {
		b.world.branches[b.n] = prepared
	}
	if b.lose() {
		return errLost
	}
	return nil
}

func (b branch) Commit(context.Context) error {
	b.step(b.yield)
	if b.world.branches[b.n] == prepared {
		b.world.branches[b.n] = committed
	}
	return nil
}

func (b branch) Rollback(context.Context) {
	b.step(b.yield)
	if s := b.world.branches[b.n]; s == active || s == prepared {
		b.world.branches[b.n] = rolledBack
	}
}

func (b branch) Leave() {}

// lose decides whether the result of a statement is lost.
func (w *world) lose() bool {
	if w.losses == 0 || w.pick(2) == 0 {
		return false
	}
	w.losses--
	return true
}

type decider struct {
	*world
	yield func() bool
}

func (d decider) Decide(context.Context) error {
	d.step(d.yield)
	if d.row != "" {
		return sharding.ErrResolved
	}
	d.noted = true
	return nil
}

func (d decider) Commit() error {
	d.step(d.yield)
	if d.losses > 0 && d.pick(2) == 1 { // the connection is lost before COMMIT arrives
		d.losses--
		d.noted, d.first = false, rolledBack
		return errLost
	}
	d.noted, d.first, d.row = false, committed, "committed"
	if d.lose() {
		return errLost
	}
	return nil
}

func (d decider) Rollback() {
	d.step(d.yield)
	d.noted, d.first = false, rolledBack
}

func (d decider) Committed(context.Context) (bool, error) {
	d.step(d.yield)
	if d.blind {
		return false, nil
	}
	if d.pick(2) == 1 {
		return false, errLost // the database is away
	}
	return d.decided(), nil
}

// decided implements xa.Committed: one statement, which waits for a transaction that has inserted
// the decision.
func (w *world) decided() bool {
	if w.row == "" {
		w.row = "aborted"
	}
	return w.row == "committed"
}

func (d decider) Forget(context.Context) {
	d.step(d.yield)
	d.row = ""
}

// found is a branch that a resolver has listed.
type found struct {
	*world
	n     int
	yield func() bool
}

func (f found) Committed(context.Context) (bool, error) {
	f.step(f.yield)
	for f.noted { // the row is locked
		f.step(f.yield)
	}
	if f.noRow {
		return f.row == "committed", nil
	}
	return f.decided(), nil
}

func (f found) End(_ context.Context, commit bool) error {
	f.step(f.yield)
	if f.world.branches[f.n] == prepared {
		f.world.branches[f.n] = rolledBack
		if commit {
			f.world.branches[f.n] = committed
		}
	}
	return nil
}

// mutated is Commit with the steps of a mutant in another order.
func mutated(ctx context.Context, m mutant, d xa.Decider, all []xa.Branch) error {
	switch {
	case m.decideFirst:
		if err := errors.Join(d.Decide(ctx), d.Commit()); err != nil {
			return err
		}
		for _, b := range all {
			_ = b.Prepare(ctx)
			_ = b.Commit(ctx)
		}
		return nil
	case m.forgetFirst:
		return xa.Commit(ctx, forgetful{d}, all)
	}
	return xa.Commit(ctx, d, all)
}

type forgetful struct{ xa.Decider }

func (f forgetful) Commit() error {
	err := f.Decider.Commit()
	if err == nil {
		f.Forget(context.Background())
	}
	return err
}

// run is one order of the steps, which pick chooses. It returns the rule that was broken.
func run(m mutant, pick func(int) int) string {
	w := &world{mutant: m, pick: pick, branches: make([]int, 2), alive: true, losses: 1}
	var result error
	ended := false
	program, stop := iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != (killed{}) {
				panic(r)
			}
		}()
		y := func() bool { return yield(struct{}{}) }
		var all []xa.Branch
		for n := range w.branches {
			all = append(all, branch{w, n, y})
		}
		result = mutated(context.Background(), m, decider{w, y}, all)
		ended = true
	})
	resolver := func(n int) (func() (struct{}, bool), func()) {
		return iter.Pull(func(yield func(struct{}) bool) {
			defer func() { _ = recover() }()
			if w.branches[n] == prepared {
				_, _ = xa.Settle(context.Background(), found{w, n, func() bool { return yield(struct{}{}) }})
			}
		})
	}
	kill := func() {
		stop()
		w.alive = false
		if w.noted { // the server rolls back what has no connection
			w.noted = false
		}
		if w.first == active {
			w.first = rolledBack
		}
		for n, s := range w.branches {
			if s == active {
				w.branches[n] = rolledBack
			}
		}
	}
	nextResolver, stopResolver := resolver(0)
	resolving := -1 // the branch that a resolver is at work on
	for range 60 {
		choices := w.choices(w.alive && !ended, resolving)
		if len(choices) == 0 {
			break
		}
		switch c := choices[pick(len(choices))]; c {
		case "program":
			if _, more := program(); !more {
				ended = true
			}
		case "kill":
			kill()
		case "forget":
			w.row = ""
		case "resolve on":
			if _, more := nextResolver(); !more {
				resolving = -1
			}
		default:
			stopResolver()
			resolving = int(c[len(c)-1] - '0')
			nextResolver, stopResolver = resolver(resolving)
		}
	}
	stopResolver()
	if w.alive && !ended {
		kill()
	}
	stop()
	if w.first == active {
		w.first = rolledBack
	}
	for n, s := range w.branches { // whoever comes last
		if s == prepared {
			_, _ = xa.Settle(context.Background(), found{w, n, func() bool { return true }})
		}
	}
	return w.judge(result, ended)
}

// choices are the next steps that are possible.
func (w *world) choices(running bool, resolving int) (all []string) {
	if running {
		all = []string{"program", "kill"}
	}
	for n, s := range w.branches {
		if resolving < 0 && s == prepared {
			all = append(all, fmt.Sprint("resolver ", n))
		}
	}
	if resolving >= 0 && !w.noted {
		all = append(all, "resolve on")
	}
	if w.row == "committed" && !slices.Contains(w.branches, prepared) && (w.forgetSoon || !running) {
		all = append(all, "forget")
	}
	return all
}

func (w *world) judge(result error, ended bool) string {
	for n, s := range w.branches {
		if (s == committed) != (w.first == committed) || s == prepared {
			return fmt.Sprintf("the first participant is %d, and branch %d is %d", w.first, n, s)
		}
	}
	switch {
	case !ended || !w.alive:
	case result == nil && w.first != committed:
		return "Commit says that it is committed, and it is not"
	case result != nil && !errors.Is(result, sharding.ErrInDoubt) && w.first == committed:
		return "Commit says that it is not committed, and it is: " + result.Error()
	}
	return ""
}

// explore tries all orders, up to a number, and returns the first that breaks a rule.
func explore(m mutant, most int) (wrong string, tried int) {
	var path []int
	for tried = range most {
		depth := 0
		var widths []int
		wrong = run(m, func(choices int) int {
			if depth == len(path) {
				path = append(path, 0)
			}
			widths = append(widths, choices)
			depth++
			return path[depth-1]
		})
		if wrong != "" {
			return fmt.Sprint(wrong, " after ", path[:depth]), tried + 1
		}
		path = path[:depth]
		for len(path) > 0 && path[len(path)-1]+1 >= widths[len(path)-1] {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return "", tried + 1
		}
		path[len(path)-1]++
	}
	return "", tried + 1
}

func TestATransactionIsCommittedEverywhereOrNowhereInAllOrdersOfSteps(t *testing.T) {
	wrong, tried := explore(mutant{}, 2_000_000)
	if wrong != "" || tried == 2_000_000 {
		t.Errorf("%s (%d orders)", wrong, tried)
	}
	t.Logf("%d orders", tried)
}

func TestEachRuleOfTheProtocolIsNeeded(t *testing.T) {
	for name, m := range map[string]mutant{
		"a resolver decides by a row": {noRow: true}, "branches are prepared before the decision": {decideFirst: true},
		"the decision is kept until all have committed": {forgetFirst: true}, "an unknown COMMIT is asked about": {blind: true},
		"the decision is kept while its program may ask about it": {forgetSoon: true},
	} {
		wrong, tried := explore(m, 2_000_000)
		if wrong == "" {
			t.Errorf("nothing goes wrong without %q in %d orders", name, tried)
		}
	}
}
