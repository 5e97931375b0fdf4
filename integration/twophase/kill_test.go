// SPDX-License-Identifier: Apache-2.0

package twophase_test

import (
	"bufio"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/shardid/shardid/integration/database"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/sharding/twophase"
)

// outcomes is what programs have printed of their transfers.
type outcomes struct {
	mu  sync.Mutex
	all map[int64]byte
}

func (o *outcomes) note(line string) {
	id, err := strconv.ParseInt(line[1:], 10, 64)
	if err != nil {
		return // the program was killed in the midst of the line
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[id] = line[0]
}

// trading starts a program, and kills it shortly after its output suffices.
func trading(t *testing.T, a, z database.Server, first int64, said *outcomes, enough func(outcome byte) bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), eastVariable+"="+a.DSN("bank_east"), westVariable+"="+z.DSN("bank_west"), driverVariable+"="+database.DriverOf(a), firstVariable+"="+strconv.FormatInt(first, 10))
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.note(lines.Text())
		if enough(lines.Text()[0]) {
			time.Sleep(rand.N(3 * time.Millisecond))
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // it was killed
}

func TestNoTransferIsThereByHalfWhenProgramsAreKilledUnderLoad(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		said := &outcomes{all: map[int64]byte{}}

		// A resolver that is in a hurry meets transactions that are on their way.
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		hurried := b.resolver(t, time.Millisecond)
		go func() { defer close(ended); hurried.Run(ctx) }()
		kills := effort.Cases(15, 400)
		committed := false // the resolver may undo the first transfers
		for n := range kills {
			outcomes := rand.IntN(40)
			trading(t, a, z, int64(n)*1_000_000, said, func(outcome byte) bool {
				outcomes--
				committed = committed || outcome == '+'
				return outcomes < 0 && committed
			})
		}
		stop()
		<-ended
		b.compare(t, said, kills, hurried)
	})
}

func TestNoTransferIsThereByHalfWhenServersAreKilledUnderLoad(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		said := &outcomes{all: map[int64]byte{}}

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		resolver := b.resolver(t, 200*time.Millisecond)
		go func() { defer close(ended); resolver.Run(ctx) }()
		kills := effort.Cases(3, 60)
		for n := range kills {
			killOne(t, a, z, n, said)
		}
		stop()
		<-ended
		b.compare(t, said, kills, resolver)
	})
}

// killOne kills a server after a program has committed some transfers, and the program after
// it has committed some more.
func killOne(t *testing.T, a, z database.Server, n int, said *outcomes) {
	t.Helper()
	const more = 15
	before, traded, now := rand.IntN(15), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(traded)
		committed := 0
		trading(t, a, z, int64(n)*1_000_000, said, func(outcome byte) bool {
			if outcome != '+' {
				return false
			}
			if committed++; committed == before+1 {
				close(now)
			}
			return committed == before+1+more
		})
	}()
	select {
	case <-now:
	case <-traded:
		t.Fatal("the program has ended by itself")
	}
	time.Sleep(rand.N(10 * time.Millisecond))
	of := []database.Server{a, z}[n%2]
	of.Kill()
	must(t, of.Start(t.Context()))
	<-traded
}

// compare compares the rows with the outcomes that the programs have printed.
func (b *bank) compare(t *testing.T, said *outcomes, kills int, also *twophase.Resolver) {
	t.Helper()
	total := b.settle(t)
	if also != nil {
		did, _ := also.Total()
		total.Committed += did.Committed
		total.RolledBack += did.RolledBack
	}
	journal, count := b.audit(t), map[byte]int{}
	for id, outcome := range said.all {
		count[outcome]++
		if sides := journal[id]; outcome == '+' && sides != 3 || outcome == '-' && sides != 0 {
			t.Errorf("the program said %c of transfer %d, which is on sides %d", outcome, id, sides)
		}
	}
	t.Logf("%d kills: %d transfers committed, %d refused, %d in doubt, %d of which nobody was told; resolvers committed %d branches and rolled %d back",
		kills, count['+'], count['-'], count['?'], len(journal)-count['+'], total.Committed, total.RolledBack)
	if count['+'] == 0 {
		t.Errorf("nothing was committed in %d kills", kills)
	}
}
