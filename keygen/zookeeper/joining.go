package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// ErrClocksDiffer: the clock of this process is not what those of the others, or
// ZooKeeper's, are. Returned by [Workers.Acquire], and told to Observer.Alarm.
var ErrClocksDiffer = errors.New("zookeeper: the clocks differ")

// passing is an obstacle that goes away by itself.
type passing struct{ error }

func (p passing) Unwrap() error { return p.error }

const (
	joinPatience = 30 * time.Second // with obstacles that pass
	joinLimit    = 10 * time.Second // for ZooKeeper, when there is a file to start from
	probeLimit   = time.Second
)

func (w *Workers) forever() string   { return w.cfg.Path + "/forever/" + w.addr }
func (w *Workers) temporary() string { return w.cfg.Path + "/temporary/" + w.addr }

// foreverNode is the data of the znode that an address keeps for ever.
type foreverNode struct {
	Worker int64     `json:"worker"`
	Time   time.Time `json:"time"` // of its own clock at the last report
}

// acquire joins through ZooKeeper or, when that is down, from the file.
func (w *Workers) acquire(ctx context.Context, l keygen.Layout) (*tenure, error) {
	last, unused, err := w.known(l)
	if err != nil {
		return nil, err
	}
	if last == nil {
		t, err := w.join(ctx, l, nil)
		if err != nil && unused != nil {
			err = fmt.Errorf("%w; %w", err, unused)
		}
		return t, err
	}
	limited, cancel := context.WithTimeout(ctx, joinLimit)
	defer cancel()
	t, err := w.join(limited, l, last)
	if err == nil || ctx.Err() != nil || w.up(ctx) {
		return t, err
	}
	w.answered(err)
	return w.resume(l, *last, err)
}

// up tells whether ZooKeeper answers.
func (w *Workers) up(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, err := w.book.client.exists(ctx, w.cfg.Path)
	return err == nil
}

// holder says who this process is, for people.
func (w *Workers) holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s (%s/%d)", w.addr, host, os.Getpid())
}

// claim says what the book is asked for in the words of ledgers.
func (w *Workers) claim(l keygen.Layout) workerid.Claim {
	return workerid.Claim{Namespace: w.cfg.Path, Layout: l, Former: w.cfg.Former}
}

func (w *Workers) asking(l keygen.Layout, last *lastKnown) asking {
	a := asking{
		owner:  w.addr,
		holder: w.holder(),
		most:   int64(1)<<l.WorkerBits() - 1,
		clock:  l,
		claim:  w.claim(l),
		term:   w.cfg.term(),
		hold:   max(w.cfg.Hold, w.cfg.term()),
		// Whoever has a file may have used a worker id further than ZooKeeper knows.
		resumes: func(e entry) bool {
			return e.Until == e.Ceiling || last != nil && last.Worker == e.worker && last.Generation == e.Generation
		},
	}
	if last != nil {
		a.above = last.Ceiling
	}
	return a
}

// join takes a worker id in ZooKeeper, once nothing stands in the way.
func (w *Workers) join(ctx context.Context, l keygen.Layout, last *lastKnown) (*tenure, error) {
	a := w.asking(l, last)
	if err := w.enter(ctx, a, last); err != nil {
		return nil, err
	}
	first := a
	first.hold = a.term // the next report holds it longer, once the file is there
	e, err := w.book.take(ctx, first)
	if err == nil {
		t := &tenure{workers: w, asking: a, worker: e.worker, entry: e, layout: l}
		if err = t.report(ctx, e, w.now()); err == nil {
			w.answered(nil)
			return t, nil
		}
	}
	return nil, errors.Join(err, w.leave(context.WithoutCancel(ctx)))
}

// enter registers this process among the running ones when its clock is right.
// It tries again while an obstacle may pass.
func (w *Workers) enter(ctx context.Context, a asking, last *lastKnown) error {
	limited, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	for {
		err := w.checkClock(limited, a, last)
		if err == nil {
			err = w.announce(limited)
		}
		if !errors.As(err, new(passing)) && !errors.Is(err, errBusy) {
			return err
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("%w: %w: %w", keygen.ErrNoWorker, limited.Err(), err)
		case <-time.After(pauseBetween):
		}
	}
}

// checkClock compares the clock with what was written down, with ZooKeeper's and
// with those of the others. Whatever cannot be read is an error.
func (w *Workers) checkClock(ctx context.Context, a asking, last *lastKnown) error {
	if _, err := w.book.open(ctx, a); err != nil {
		return err
	}
	if err := w.checkPast(ctx, last); err != nil {
		return err
	}
	r, err := compare(w.now, func() (time.Time, error) { return w.book.present(ctx) })
	if err != nil {
		return err
	}
	if r.off(w.cfg.Threshold) {
		return fmt.Errorf("%w: it is %v from that of ZooKeeper, which is more than %v; set it right", ErrClocksDiffer, r.ahead, w.cfg.Threshold)
	}
	return w.checkPeers(ctx)
}

// checkPast refuses a clock that is behind the time that this address or the file
// had before.
func (w *Workers) checkPast(ctx context.Context, last *lastKnown) error {
	now := w.now()
	if last != nil && now.Before(last.Written) {
		return behind(now, last.Written, w.cfg.File)
	}
	at, err := w.book.client.find(ctx, w.forever())
	if at == nil || err != nil {
		return err
	}
	var f foreverNode
	if err := json.Unmarshal(at.data, &f); err != nil {
		return fmt.Errorf("%s holds no time (%w); delete it when the clock is right", w.forever(), err)
	}
	if now.Before(f.Time) {
		return behind(now, f.Time, w.forever())
	}
	return nil
}

func behind(now, before time.Time, where string) error {
	return fmt.Errorf("%w: it reads %v, and %s says that it was %v before; set the clock right or, if that one was wrong, delete %s",
		keygen.ErrClockRollback, now.UTC(), where, before.UTC(), where)
}

// checkPeers compares the clock with the average of the running processes'.
func (w *Workers) checkPeers(ctx context.Context) error {
	if err := w.book.client.lay(ctx, w.cfg.Path+"/temporary"); err != nil {
		return err
	}
	addrs, err := w.book.client.children(ctx, w.cfg.Path+"/temporary")
	if err != nil {
		return fmt.Errorf("list the running processes: %w", err)
	}
	addrs = slices.DeleteFunc(addrs, func(addr string) bool { return addr == w.addr })
	if len(addrs) == 0 {
		return nil
	}
	r, err := average(ctx, w.now, addrs)
	if err != nil {
		return passing{fmt.Errorf("%w: none of the %d other processes tells its time: %w", ErrClocksDiffer, len(addrs), err)}
	}
	if r.off(w.cfg.Threshold) {
		return fmt.Errorf("%w: it is %v from the average of the other processes (%d are registered), which is more than %v; set it right", ErrClocksDiffer, r.ahead, len(addrs), w.cfg.Threshold)
	}
	return nil
}

// announce registers this process as long as its session lasts.
func (w *Workers) announce(ctx context.Context) error {
	won, err := w.book.client.add(ctx, w.temporary(), []byte(w.holder()), ephemeral)
	if won || err != nil {
		return err
	}
	if ours, err := w.registered(ctx); ours || err != nil {
		return err
	}
	return passing{fmt.Errorf("another process is registered at %s, or was killed and its session has not ended yet; give each process an address of its own", w.addr)}
}

// registered tells whether the registration is of the session of this process.
func (w *Workers) registered(ctx context.Context) (bool, error) {
	stat, err := w.book.client.exists(ctx, w.temporary())
	return stat != nil && stat.EphemeralOwner == w.book.client.nodes.session(), err
}

// leave ends the registration.
func (w *Workers) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	if ours, err := w.registered(ctx); !ours || err != nil {
		return err
	}
	return w.book.client.drop(ctx, w.temporary(), anyVersion)
}

// resume goes on with the worker id of the file. Nobody else issues ids with it
// before the time that ZooKeeper wrote down, whatever happened since.
func (w *Workers) resume(l keygen.Layout, last lastKnown, down error) (*tenure, error) {
	now := w.now()
	if now.Before(last.Written) {
		return nil, behind(now, last.Written, w.cfg.File)
	}
	e := entry{worker: last.Worker, notBefore: max(last.Ceiling, l.Tick(now))}
	e.Generation, e.Until = last.Generation, last.Until
	e.Ceiling = min(e.notBefore+int64(w.cfg.term()/l.Unit), last.Until)
	if e.Ceiling <= e.notBefore {
		return nil, fmt.Errorf("%w: the worker id of %s was this one's until %v; wait for ZooKeeper: %w", keygen.ErrNoWorker, w.cfg.File, l.At(last.Until), down)
	}
	if err := w.remember(l, e, now); err != nil {
		return nil, err
	}
	return &tenure{workers: w, asking: w.asking(l, &last), worker: e.worker, entry: e, layout: l, reported: now}, nil
}
