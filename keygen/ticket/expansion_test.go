// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/shardid/shardid/keygen/ticket"
)

// history is a family of servers that grows, and who made which id.
type history struct {
	rand    *rand.Rand
	servers []*memory
	maker   map[int64]int64 // the offset of who made an id
	highest map[int64]int64 // the highest id of each offset
	plans   []ticket.Expansion
}

// give lets the servers give ids in any proportion.
func (h *history) give(t *testing.T, most int) {
	t.Helper()
	for _, m := range h.servers {
		for range h.rand.IntN(most) {
			span, err := m.Reserve(t.Context(), 1+h.rand.Int64N(5))
			if err != nil {
				t.Fatal(err)
			}
			for k := range span.Count {
				id := span.First + k*span.Step
				if other, taken := h.maker[id]; taken {
					t.Fatalf("server %d gave %d, which server %d had given", m.numbering.Offset, id, other)
				}
				h.maker[id] = m.numbering.Offset
				h.highest[m.numbering.Offset] = id
			}
		}
	}
}

func (h *history) live() []ticket.Live {
	live := make([]ticket.Live, 0, len(h.servers))
	for _, m := range h.servers {
		live = append(live, ticket.Live{Numbering: m.numbering, Last: h.highest[m.numbering.Offset]})
	}
	return live
}

// grow carries out a plan. It tells whether the plan could be.
func (h *history) grow(t *testing.T, size int64) bool {
	t.Helper()
	plan, err := ticket.PlanExpansion(h.live(), size, 1+h.rand.Int64N(100))
	if err != nil {
		t.Fatal(err)
	}
	h.give(t, 10)
	for _, m := range h.servers {
		next := m.last + m.numbering.Increment
		m.numbering.Increment = size
		for (next-m.numbering.Offset)%size != 0 { // as a server does whose increment changed
			next++
		}
		m.last = next - size
	}
	if err := plan.Armed(h.live()); err != nil {
		if !errors.Is(err, ticket.ErrUnarmed) {
			t.Fatal(err)
		}
		return false
	}
	h.give(t, 10)
	for _, s := range plan.Added() {
		if s.AutoIncrement < plan.From || s.AutoIncrement >= plan.From+size {
			t.Fatalf("%+v begins at %+v", plan, s)
		}
		h.servers = append(h.servers, &memory{numbering: s.Numbering, last: s.AutoIncrement - size})
	}
	h.plans = append(h.plans, plan)
	h.give(t, 20)
	return true
}

// owner returns the offset of the server that an id is routed to.
func (h *history) owner(id int64) int64 {
	increment := int64(1)
	for _, p := range h.plans {
		if id >= p.From {
			increment = p.New
		}
	}
	return (id-1)%increment + 1
}

func TestEveryIDOfAnExpansionIsUniqueAndRoutedToItsMaker(t *testing.T) {
	finished := 0
	for seed := range uint64(2000) {
		h := &history{rand: rand.New(rand.NewPCG(seed, 0)), servers: []*memory{server(1, 1)}, maker: map[int64]int64{}, highest: map[int64]int64{}}
		h.give(t, 20)
		if !h.grow(t, 2) || !h.grow(t, 4) {
			continue // Armed found that the margin was too small
		}
		finished++
		for id, maker := range h.maker {
			if got := h.owner(id); got != maker {
				t.Fatalf("seed %d: %d of server %d is routed to %d; %+v", seed, id, maker, got, h.plans)
			}
		}
	}
	if finished < 500 || finished > 1990 {
		t.Errorf("%d of 2000 histories came to their end; the margins are to be too small for some", finished)
	}
}

func TestAnExpansionIsRefusedThatCannotWork(t *testing.T) {
	one := []ticket.Live{{Numbering: ticket.Numbering{Offset: 1, Increment: 1}, Last: 7}}
	swapped := []ticket.Live{{Numbering: ticket.Numbering{Offset: 2, Increment: 2}}, {Numbering: ticket.Numbering{Offset: 1, Increment: 2}}}
	for name, plan := range map[string]func() (ticket.Expansion, error){
		"no server":   func() (ticket.Expansion, error) { return ticket.PlanExpansion(nil, 2, 1) },
		"no growth":   func() (ticket.Expansion, error) { return ticket.PlanExpansion(one, 1, 1) },
		"no multiple": func() (ticket.Expansion, error) { return ticket.PlanExpansion(swapped, 3, 1) },
		"no margin":   func() (ticket.Expansion, error) { return ticket.PlanExpansion(one, 2, 0) },
		"no room":     func() (ticket.Expansion, error) { return ticket.PlanExpansion(one, 2, 1<<63-1) },
		"swapped":     func() (ticket.Expansion, error) { return ticket.PlanExpansion(swapped, 4, 1) },
	} {
		if p, err := plan(); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	p, err := ticket.PlanExpansion(one, 2, 7)
	if err != nil || p.From != 14 || p.Added()[0] != (ticket.Start{Numbering: ticket.Numbering{Offset: 2, Increment: 2}, AutoIncrement: 14}) {
		t.Errorf("%+v, %v", p, err)
	}
	if err := p.Armed(nil); !errors.Is(err, ticket.ErrUnarmed) {
		t.Errorf("nobody asked: %v", err)
	}
}
