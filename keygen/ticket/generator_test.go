// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/ticket"
)

func open(t *testing.T, step int64, servers ...ticket.Server) *ticket.Generator {
	t.Helper()
	g, err := ticket.New(t.Context(), ticket.Config{Servers: servers, Step: step})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func ids(t *testing.T, g *ticket.Generator, n int) []int64 {
	t.Helper()
	ids := make([]int64, n)
	if err := keygen.Fill(t.Context(), g, ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestConformance(t *testing.T) {
	one := server(2, 3)
	keygentest.Generator(t, func(t *testing.T) keygen.Generator[int64] { return open(t, 100, one) })
}

func TestServersTakeTurns(t *testing.T) {
	g := open(t, 10, server(1, 3), server(2, 3), server(3, 3))
	got := ids(t, g, 9)
	slices.Sort(got)
	if !slices.Equal(got, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("got %v", got)
	}
}

func TestAServerThatFailsOrHangsIsPassedOverAndComesBack(t *testing.T) {
	for name, fault := range map[string]func(*memory){"fails": down, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				odd, even := server(1, 2), server(2, 2)
				g := open(t, 10, odd, even)
				odd.set(fault)
				all := ids(t, g, 20) // the failing one's too, from memory
				begin := time.Now()
				for range 100 {
					id := ids(t, g, 1)[0]
					if id%2 == 1 && len(all) > 40 {
						t.Errorf("%d comes from the broken server", id)
					}
					all = append(all, id)
					synctest.Wait()
				}
				if took := time.Since(begin); took > 5*time.Second {
					t.Errorf("a broken server costs %v in 100 ids", took)
				}
				time.Sleep(soon)
				if g.Stats().LastError == nil {
					t.Error("the stats do not show the broken server")
				}
				odd.set(back)
				time.Sleep(soon)
				synctest.Wait()
				late := ids(t, g, 4)
				if !slices.ContainsFunc(late, func(id int64) bool { return id%2 == 1 }) || g.Stats().LastError != nil {
					t.Errorf("the server is back, and the ids are %v; %v", late, g.Stats().LastError)
				}
				if id, twice := keygentest.Duplicate(append(all, late...)); twice {
					t.Errorf("%d came twice", id)
				}
			})
		})
	}
}

func TestAServerThatIsDownAtTheStartJoinsInLater(t *testing.T) {
	for name, fault := range map[string]func(*memory){"fails": down, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				odd, even := server(1, 2), server(2, 2)
				odd.set(fault)
				begin := time.Now()
				g := open(t, 10, odd, even)
				if took := time.Since(begin); took > 3*time.Second {
					t.Errorf("started after %v", took)
				}
				if got := ids(t, g, 3); !slices.Equal(got, []int64{2, 4, 6}) {
					t.Errorf("got %v", got)
				}
				odd.set(back)
				time.Sleep(2 * soon)
				if got := ids(t, g, 2); !slices.Contains(got, 1) {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

func TestNoServerAtAllIsAnErrorThatNamesEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd, even := server(1, 2), server(2, 2)
		odd.set(down)
		even.set(down)
		_, err := ticket.New(t.Context(), ticket.Config{Servers: []ticket.Server{odd, even}})
		if !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, errDown) || strings.Count(err.Error(), "refused") != 2 {
			t.Errorf("got %v", err)
		}
	})
}

func TestACallEndsWithItsContextOrAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := server(1, 1)
		g := open(t, 1, one)
		one.set(hangs)
		for g.Stats().Remaining > 0 {
			ids(t, g, 1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if id, err := g.Next(ctx); !errors.Is(err, keygen.ErrStarved) || !errors.Is(err, context.DeadlineExceeded) || id != 0 || time.Since(begin) != time.Second {
			t.Errorf("%d, %v after %v", id, err, time.Since(begin))
		}
		begin = time.Now()
		if id, err := g.Next(t.Context()); !errors.Is(err, keygen.ErrStarved) || id != 0 || time.Since(begin) != 10*time.Second {
			t.Errorf("%d, %v after %v", id, err, time.Since(begin))
		}
		if s := g.Stats(); s.Issued < 1 || s.Waits != 2 || s.Failures != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAServerThatWentBackIsOutOfServiceAndTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		odd, even := server(1, 2), server(2, 2)
		g := open(t, 5, odd, even)
		all := ids(t, g, 100)
		odd.set(func(m *memory) { m.last = 1 })
		all = append(all, ids(t, g, 200)...)
		synctest.Wait()
		if err := g.Stats().LastError; !errors.Is(err, keygen.ErrRegressed) || !strings.Contains(err.Error(), "server 1 of 2") {
			t.Errorf("the stats say %v", err)
		}
		even.set(func(m *memory) { m.last = 2 })
		for range 300 { // until what is in memory is used up
			id, err := g.Next(t.Context())
			if err != nil {
				if !errors.Is(err, keygen.ErrRegressed) || errors.Is(err, keygen.ErrStarved) {
					t.Errorf("got %v", err)
				}
				break
			}
			all = append(all, id)
		}
		if id, twice := keygentest.Duplicate(all); twice {
			t.Errorf("%d came twice", id)
		}
		// With both far ahead again it goes on.
		odd.set(func(m *memory) { m.last = 10_001 })
		time.Sleep(soon)
		if id := ids(t, g, 1)[0]; id < 10_001 {
			t.Errorf("went on with %d", id)
		}
	})
}

// lying counts otherwise than it says.
type lying struct{ *memory }

func (lying) Numbering() (offset, increment int64) { return 2, 2 }

func TestIDsOfAnotherServersNumberingAreRefused(t *testing.T) {
	var wrong *ticket.NumberingError
	_, err := ticket.New(t.Context(), ticket.Config{Servers: []ticket.Server{server(1, 2), lying{server(1, 2)}}})
	if !errors.As(err, &wrong) || wrong.Want != (ticket.Numbering{Offset: 2, Increment: 2}) || !errors.Is(err, keygen.ErrRegressed) {
		t.Errorf("got %v", err)
	}
}

func TestConfigIsCheckedAndTheErrorNamesTheField(t *testing.T) {
	for want, cfg := range map[string]ticket.Config{
		"Servers is empty":  {},
		"Servers[1] is nil": {Servers: []ticket.Server{server(1, 1), nil}},
		"Servers[0] is nil": {Servers: []ticket.Server{(*ticket.Table)(nil)}},
		"Step":              {Servers: []ticket.Server{server(1, 1)}, Step: -1},
		"the offset is 0":   {Servers: []ticket.Server{server(0, 1)}},
		"the offset is 3":   {Servers: []ticket.Server{server(3, 2)}},
		"the increment is":  {Servers: []ticket.Server{server(1, 65536)}},
		"the same ids":      {Servers: []ticket.Server{server(1, 2), server(3, 4)}},
	} {
		if _, err := ticket.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
	if _, err := ticket.NewTable(ticket.TableConfig{}); err == nil || !strings.Contains(err.Error(), "TableConfig.DB") {
		t.Errorf("NewTable: %v", err)
	}
	var table ticket.Table
	_, reserved := table.Reserve(t.Context(), 1)
	_, live := table.Live(t.Context())
	for _, err := range []error{reserved, live} {
		if err == nil || !strings.Contains(err.Error(), "TableConfig.DB") {
			t.Errorf("a Table that NewTable has not made: %v", err)
		}
	}
}
