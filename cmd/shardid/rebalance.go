// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/migration"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/schema/rebalance"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/slotstore"
)

const rebalanceLong = `Rebalance moves slots between shards while applications read and write. The map of the
slots is in the home database, where "slots" of the configuration has its name; programs that
follow it (slotstore.Store.Follow) learn of each move. docs/rebalance.md describes how
to add a server, and how to drain one.`

// errMoving: status found moving slots.
var errMoving = errors.New("slots are on their way; shardid rebalance run brings them there, abort takes them back")

// rebalancing are the flags of the verbs.
type rebalancing struct {
	config, file string
	drain        []string
	asJSON       bool
	pace         pace
	cmd          *cobra.Command
}

// pace are the flags that control the speed of run.
type pace struct {
	maxPause, interval time.Duration
	slots              int
	throttleFile       string
}

func newRebalance() *cobra.Command {
	r := &rebalancing{pace: pace{maxPause: 30 * time.Second, interval: 10 * time.Second, slots: 8}}
	cmd := &cobra.Command{
		Use: "rebalance", Short: "Move slots to other shards: add a server, drain one", Long: rebalanceLong + "\n\n" + layoutfile.Help, Args: command.Known,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	create := r.verb("create", "Store the map of the configuration", "Create stores the map of the slots, with the shards of the configuration's tables. An existing map is not changed.", (*balance).create)
	plan := r.verb("plan", "Print the slots that would move", `Plan prints the fewest moves after which every shard has as many slots as every other, or one more,
and a drained one none. Rows and bytes are those of the databases' statistics, divided by slots.`, (*balance).printPlan)
	plan.Flags().StringVar(&r.file, "out", "", "write the moves to this file, for run and undo")
	run := r.verb("run", "Move the slots", `Run moves the slots that plan lists, or those of --plan: it copies their rows, follows
changes, compares, and switches. Interrupt it at any time, and run it again: it resumes where it
stopped. It does not end because a database is unreachable.`, (*balance).run)
	undo := r.verb("undo", "Move the slots of a plan back", "Undo moves the slots of --plan back to their former shards, as run with the reverse moves.", (*balance).undo)
	for _, verb := range []*cobra.Command{run, undo} {
		verb.Flags().StringVar(&r.file, "plan", "", "a file of plan --out")
		verb.Flags().Var(input.Between(time.Millisecond, time.Hour, &r.pace.maxPause), "max-pause", "how long the keys of slots may be refused while they are switched")
		verb.Flags().Var(input.Between(1, 1<<20, &r.pace.slots), "slots", "how many slots to switch at a time: with fewer, fewer keys wait; with more, the run ends sooner")
		verb.Flags().Var(input.Between(time.Millisecond, 24*time.Hour, &r.pace.interval), "interval", "time between two lines of progress")
		verb.Flags().StringVar(&r.pace.throttleFile, "throttle-file", "", "copy nothing while this file exists")
	}
	for _, verb := range []*cobra.Command{plan, run} {
		verb.Flags().StringSliceVar(&r.drain, "drain", nil, "leave no slot on the shards of this database; may be repeated")
	}
	status := r.verb("status", "Print how many slots each shard has, and which are moving; exit with 1 if some are", "Status prints the shards, and the moving slots.", (*balance).status)
	for _, verb := range []*cobra.Command{plan, status} {
		verb.Flags().BoolVar(&r.asJSON, "json", false, "print one JSON object")
	}
	cmd.AddCommand(create, plan, run, status, undo, r.verb("abort", "Cancel moves that have not switched yet", `Abort cancels the moves of slots whose new shard does not serve them yet, and removes the copied rows.
Slots that have switched stay on their new shard; undo moves them back.`, (*balance).abort))
	return cmd
}

func (r *rebalancing) verb(use, short, long string, do func(*balance, context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " --config FILE", Short: short, Long: long + "\n\n" + rebalanceLong,
		Example: "  shardid rebalance " + use + " --config shards.json" + map[string]string{
			"plan": " --out moves.json", "run": " --plan moves.json", "undo": " --plan moves.json",
		}[use],
		Args: command.NoArgs("give the configuration with --config"),
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r.cmd = cmd
		return r.do(cmd.Context(), do)
	}
	layoutfile.Flag(cmd, &r.config)
	return cmd
}

// do opens the databases of the file.
func (r *rebalancing) do(ctx context.Context, work func(*balance, context.Context) error) (err error) {
	layout, err := layoutfile.Read(r.config)
	if err != nil {
		return err
	}
	unopened := layout.Unopened()
	router, err := layout.Router(unopened)
	if err != nil {
		return err // before any database is opened
	}
	home, err := layout.HomeDB(unopened)
	if err != nil {
		return err
	}
	if _, err := layout.SlotStore(home, router); err != nil {
		return err
	}
	if r.file != "" && len(r.drain) > 0 && r.cmd.Name() == "run" {
		return input.Errorf("--plan has the moves already; give --drain to plan, or leave --plan out")
	}
	for _, name := range r.drain {
		if unopened[name] == nil {
			return input.Errorf("--drain: the configuration has no database %q", name)
		}
	}
	s, err := layout.OpenToWrite(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	b := &balance{rebalancing: r}
	if err := b.open(ctx, layout, s.DBs); err != nil {
		return explained(balanceCode(err), s.Mask)
	}
	return explained(balanceCode(work(b, ctx)), s.Mask)
}

// balanceCode returns the error with the exit code of its cause.
func balanceCode(err error) error {
	if database.Away(err) {
		return command.WithCode(err, command.ExitFailure)
	}
	for _, known := range []struct {
		err  error
		code int
	}{
		{slotstore.ErrConfig, command.ExitInput}, {rebalance.ErrConfig, command.ExitInput}, {sharding.ErrNoSlot, command.ExitInput},
		{slotstore.ErrNoMap, command.MigrateNotReady}, {sharding.ErrStaleMap, command.MigrateChanged}, {slotstore.ErrState, command.MigrateChanged},
	} {
		if errors.Is(err, known.err) {
			return command.WithCode(err, known.code)
		}
	}
	return migration.Coded(err)
}

// explained hides passwords.
func explained(err error, m layoutfile.Mask) error {
	if errors.Is(err, errMoving) {
		return err
	}
	return m.Explain(err)
}

// balance is an open map of slots.
type balance struct {
	*rebalancing

	store  *slotstore.Store
	router *sharding.Router
	table  sharding.Table // the first of the map, whose targets name the shards
	shards int
}

// warnOfMissingCopies warns if databases to which slots move lack a broadcast table. Moves create the tables of the map only.
func (b *balance) warnOfMissingCopies(ctx context.Context, moves []sharding.Move) {
	to := sharding.DBs{}
	for _, m := range moves {
		to[m.To.DB] = b.router.DB(m.To.DB)
	}
	for _, table := range b.router.Broadcasts() {
		if without := migration.WithoutCopy(ctx, to, table); len(without) > 0 {
			_, _ = fmt.Fprintf(b.cmd.ErrOrStderr(), "warning: %s: %s: the file lists it as broadcast, and there is no such table: programs cannot write to it, and queries that join it fail as soon as a slot has moved there; create it and copy its rows before\n",
				strings.Join(without, ", "), table)
		}
	}
}

// warnOfUnmovable warns of a table that run would refuse.
func (b *balance) warnOfUnmovable(ctx context.Context, moves []sharding.Move) error {
	mover, err := rebalance.NewMover(rebalance.MoverConfig{Store: b.store})
	if err != nil {
		return err
	}
	if err := mover.Check(ctx, moves...); err != nil {
		_, _ = fmt.Fprintf(b.cmd.ErrOrStderr(), "warning: run would end with: %v\n", err)
	}
	return nil
}

func (b *balance) open(ctx context.Context, layout layoutfile.File, dbs sharding.DBs) (err error) {
	if b.router, err = layout.Router(dbs); err != nil {
		return err
	}
	home, err := layout.HomeDB(dbs)
	if err != nil {
		return err
	}
	c, err := layout.SlotStore(home, b.router)
	if err != nil {
		return err
	}
	if b.store, err = layoutfile.OpenStore(ctx, c); err != nil {
		return err
	}
	b.table = b.store.Tables()[0]
	b.shards = len(c.Shards[b.table.Name])
	return nil
}

func (b *balance) target(shard int) sharding.Target { return b.store.Target(b.table, shard) }

func (b *balance) create(ctx context.Context) error {
	if err := b.store.Create(ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintf(b.cmd.OutOrStdout(), "the map %s is stored\n", b.store.Name())
	return err
}

// ends is the shard of a slot when its present move has ended.
func ends(s slotstore.Slot) int {
	if s.State == slotstore.Copying || s.State == slotstore.Fenced {
		return s.Other
	}
	return s.Shard
}

// even returns the moves after which all shards but the drained ones have equally many
// slots.
func (b *balance) even(v slotstore.View) ([]sharding.Move, error) {
	var stay []sharding.Target
	for shard := range b.shards {
		if at := b.target(shard); !slices.Contains(b.drain, at.DB) {
			stay = append(stay, at)
		}
	}
	if len(stay) == 0 {
		return nil, input.Errorf("--drain: no shard is left for the slots")
	}
	place := make([]sharding.Target, len(v.Slots))
	for i, s := range v.Slots {
		place[i] = b.target(ends(s))
	}
	now, err := sharding.MapOf(place...)
	if err != nil {
		return nil, err
	}
	next, err := now.Rebalance(len(place), stay...)
	if err != nil {
		return nil, err
	}
	return sharding.Plan(len(place), now, next)
}

// moves are the moves of the file, or those that even computes.
func (b *balance) moves(v slotstore.View) ([]sharding.Move, error) {
	if b.file == "" || b.cmd.Name() == "plan" {
		return b.even(v)
	}
	text, err := os.ReadFile(b.file)
	if err != nil {
		return nil, input.Errorf("--plan %s cannot be read; write it with shardid rebalance plan --out", b.file)
	}
	var p balancePlan
	if err := input.JSON(text, &p); err != nil {
		return nil, input.Errorf("--plan %s: %w", b.file, err)
	}
	if p.Map != b.store.Name() {
		return nil, input.Errorf("--plan %s is of the map %q, and not of %q", b.file, p.Map, b.store.Name())
	}
	return p.moves()
}

// balancePlan is the JSON form of a plan.
type balancePlan struct {
	Map   string        `json:"map"`
	Moves []plannedMove `json:"moves"`
	Rows  int64         `json:"rows"`  // estimated, -1 if unknown
	Bytes int64         `json:"bytes"` // estimated, -1 if unknown
}

type plannedMove struct {
	Slot sharding.Slot `json:"slot"`
	From string        `json:"from"`
	To   string        `json:"to"`
}

func (p balancePlan) moves() (all []sharding.Move, err error) {
	for _, m := range p.Moves {
		at, err := layoutfile.TargetsOf([]string{m.From, m.To})
		if err != nil {
			return nil, input.Errorf("slot %d: %w", m.Slot, err)
		}
		all = append(all, sharding.Move{Slot: m.Slot, From: at[0], To: at[1]})
	}
	return all, nil
}

func (b *balance) printPlan(ctx context.Context) error {
	v, err := b.store.Load(ctx)
	if err != nil {
		return err
	}
	moves, err := b.even(v)
	if err != nil {
		return err
	}
	b.warnOfMissingCopies(ctx, moves)
	if err := b.warnOfUnmovable(ctx, moves); err != nil {
		return err
	}
	sizes := b.sizes(ctx, v)
	p := balancePlan{Map: b.store.Name(), Moves: []plannedMove{}}
	all := amount{}
	groups := map[[2]sharding.Target]*group{}
	var order []*group
	for _, m := range moves {
		p.Moves = append(p.Moves, plannedMove{m.Slot, m.From.String(), m.To.String()})
		g := groups[[2]sharding.Target{m.From, m.To}]
		if g == nil {
			g = &group{from: m.From, to: m.To}
			groups[[2]sharding.Target{m.From, m.To}], order = g, append(order, g)
		}
		one := sizes[m.From]
		g.slots, g.amount, all = append(g.slots, int(m.Slot)), g.plus(one), all.plus(one)
	}
	p.Rows, p.Bytes = all.rows, all.bytes
	if b.file != "" {
		text, err := json.MarshalIndent(p, "", "  ")
		if err != nil {
			return err
		}
		if err := writeNew(b.file, append(text, '\n')); err != nil {
			return err
		}
	}
	if b.asJSON {
		return command.WriteJSON(b.cmd.OutOrStdout(), p)
	}
	return b.showPlan(order, len(moves), all)
}

// writeNew writes a plan. It replaces no file: undo may need the plan in it.
func writeNew(name string, text []byte) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // it has no secret
	if errors.Is(err, fs.ErrExist) {
		return input.Errorf("--out %s exists, and undo may need the plan in it; name another file, or remove it", name)
	}
	if err == nil {
		_, err = file.Write(text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return input.Errorf("--out %s cannot be written", name)
	}
	return nil
}

// group is a set of slots that move from one shard to another.
type group struct {
	amount

	from, to sharding.Target
	slots    []int
}

func (b *balance) showPlan(groups []*group, moves int, all amount) error {
	w := b.cmd.OutOrStdout()
	if moves == 0 {
		_, err := fmt.Fprintln(w, "nothing has to move")
		return err
	}
	table := term.NewTable(term.StyleFor(w), "FROM", "TO", ">SLOTS", ">ROWS", ">MB", "WHICH")
	for _, g := range groups {
		table.Row(g.from.String(), g.to.String(), strconv.Itoa(len(g.slots)), about(g.rows), megabytes(g.bytes), runs(g.slots))
	}
	_, err := fmt.Fprintf(w, "%s%s, about %s rows%s, %s MB\n", table, term.Count(int64(moves), "slot"), about(all.rows), b.ofTables(), megabytes(all.bytes))
	return err
}

// ofTables names the tables of a map, if there are several: the targets only show the first.
func (b *balance) ofTables() string {
	var names []string
	for _, t := range b.store.Tables() {
		names = append(names, t.Name)
	}
	if len(names) < 2 {
		return ""
	}
	return " of " + strings.Join(names, ", ")
}

func about(n int64) string {
	if n < 0 {
		return "?"
	}
	return term.Number(n)
}

func megabytes(n int64) string {
	if n < 0 {
		return "?"
	}
	return term.Number((n + 1<<19) >> 20)
}

// runs returns "0-3 7" for 0, 1, 2, 3, 7.
func runs(slots []int) string {
	var parts []string
	for i := 0; i < len(slots); {
		j := i
		for j+1 < len(slots) && slots[j+1] == slots[j]+1 {
			j++
		}
		text := strconv.Itoa(slots[i])
		if j > i {
			text += "-" + strconv.Itoa(slots[j])
		}
		parts, i = append(parts, text), j+1
	}
	return strings.Join(parts, " ")
}

// shardStatus is the JSON form of a shard.
type shardStatus struct {
	Shard  int    `json:"shard"`
	Target string `json:"target"`
	Slots  int    `json:"slots"`
	Rows   int64  `json:"rows"` // estimated, -1 if unknown
}

// movingSlot is the JSON form of a moving slot.
type movingSlot struct {
	Slot  sharding.Slot `json:"slot"`
	State string        `json:"state"`
	From  string        `json:"from"`
	To    string        `json:"to"`
}

type balanceStatus struct {
	Map     string        `json:"map"`
	Version int64         `json:"version"`
	Shards  []shardStatus `json:"shards"`
	Moving  []movingSlot  `json:"moving"`
	Due     int           `json:"due"` // slots that run would move in addition
}

func (b *balance) status(ctx context.Context) error {
	v, err := b.store.Load(ctx)
	if err != nil {
		return err
	}
	s := balanceStatus{Map: b.store.Name(), Version: v.Version, Moving: []movingSlot{}}
	due, err := b.even(v)
	if err != nil {
		return err
	}
	s.Due = len(due)
	sizes := b.sizes(ctx, v)
	slots := make([]int, b.shards)
	for _, slot := range v.Slots {
		slots[slot.Shard]++
		if slot.State != slotstore.Active {
			from, to := slot.Shard, slot.Other
			if slot.State == slotstore.Moved {
				from, to = to, from
			}
			s.Moving = append(s.Moving, movingSlot{slot.Slot, string(slot.State), b.target(from).String(), b.target(to).String()})
		}
	}
	for shard, n := range slots {
		at := b.target(shard)
		rows := int64(-1)
		if of, known := sizes[at]; known && of.rows >= 0 {
			rows = of.rows * int64(n)
		}
		s.Shards = append(s.Shards, shardStatus{shard, at.String(), n, rows})
	}
	if b.asJSON {
		err = command.WriteJSON(b.cmd.OutOrStdout(), s)
	} else {
		err = b.showStatus(s)
	}
	if err == nil && len(s.Moving) > 0 {
		err = errMoving
	}
	return err
}

func (b *balance) showStatus(s balanceStatus) error {
	w := b.cmd.OutOrStdout()
	table := term.NewTable(term.StyleFor(w), ">SHARD", "TARGET", ">SLOTS", ">ROWS")
	for _, sh := range s.Shards {
		table.Row(strconv.Itoa(sh.Shard), sh.Target, strconv.Itoa(sh.Slots), about(sh.Rows))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "map %s%s, version %d\n%s", s.Map, b.ofTables(), s.Version, table)
	for _, m := range s.Moving {
		fmt.Fprintf(&out, "slot %d is %s: %s → %s\n", m.Slot, m.State, m.From, m.To)
	}
	if s.Due > 0 {
		fmt.Fprintf(&out, "%s would move to make the shards even; shardid rebalance plan lists them\n", term.Count(int64(s.Due), "slot"))
	}
	_, err := w.Write([]byte(out.String()))
	return err
}

func (b *balance) undo(ctx context.Context) error {
	if b.file == "" {
		return input.Errorf("give the moves to undo with --plan, a file of shardid rebalance plan --out")
	}
	v, err := b.store.Load(ctx)
	if err != nil {
		return err
	}
	moves, err := b.moves(v)
	if err != nil {
		return err
	}
	for i, m := range moves {
		moves[i] = sharding.Move{Slot: m.Slot, From: m.To, To: m.From}
	}
	return b.bring(ctx, moves)
}

func (b *balance) run(ctx context.Context) error {
	v, err := b.store.Load(ctx)
	if err != nil {
		return err
	}
	moves, err := b.moves(v)
	if err != nil {
		return err
	}
	b.warnOfMissingCopies(ctx, moves)
	return b.bring(ctx, moves)
}

// abort cancels the moves that have not switched.
func (b *balance) abort(ctx context.Context) error {
	v, err := b.store.Load(ctx)
	if err != nil {
		return err
	}
	var back []sharding.Slot
	for _, s := range v.Slots {
		if s.State == slotstore.Copying || s.State == slotstore.Fenced {
			back = append(back, s.Slot)
		}
	}
	if len(back) > 0 {
		if err := b.store.Settle(ctx); err != nil {
			return err
		}
		if err := b.store.Abort(ctx, back...); err != nil {
			return err
		}
	}
	mover, err := rebalance.NewMover(rebalance.MoverConfig{Store: b.store})
	if err != nil {
		return err
	}
	if _, err := mover.Run(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(b.cmd.OutOrStdout(), "%s taken back\n", term.Count(int64(len(back)), "slot"))
	return err
}
