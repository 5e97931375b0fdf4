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

// tradeFor starts a program, lets it say so many words, and kills it a moment later.
func tradeFor(t *testing.T, a, z database.Server, first int64, words int, said *outcomes) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), eastVariable+"="+a.DSN("bank_east"), westVariable+"="+z.DSN("bank_west"), driverVariable+"="+driverOf(a), firstVariable+"="+strconv.FormatInt(first, 10))
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		said.note(lines.Text())
		if n == words {
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
		for n := range kills {
			tradeFor(t, a, z, int64(n)*1_000_000, rand.IntN(40), said)
		}
		stop()
		<-ended
		b.judge(t, said, kills, hurried)
	})
}

func TestNoTransferIsThereByHalfWhenServersAreKilledUnderLoad(t *testing.T) {
	serversOf(t, func(t *testing.T, a, z database.Server) {
		b := openBank(t, a, z)
		must(t, twophase.Create(t.Context(), b.router, nil))
		said := &outcomes{all: map[int64]byte{}}
		kills := effort.Cases(3, 60)
		for n := range kills {
			var wg sync.WaitGroup
			wg.Go(func() { tradeFor(t, a, z, int64(n)*1_000_000, 150, said) })
			of := []database.Server{a, z}[n%2]
			time.Sleep(rand.N(150 * time.Millisecond))
			of.Kill()
			must(t, of.Start(t.Context()))
			wg.Wait()
		}
		b.judge(t, said, kills, nil)
	})
}

// judge compares what is there with what the programs have said.
func (b *bank) judge(t *testing.T, said *outcomes, kills int, also *twophase.Resolver) {
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
