// SPDX-License-Identifier: Apache-2.0

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

// ErrClocksDiffer: the clock of this process differs from those of the others, or from
// ZooKeeper's. Returned by [Workers.Acquire], and passed to Observer.Alarm.
var ErrClocksDiffer = errors.New("zookeeper: the clocks differ")

// transient is an error that may pass without anybody's action.
type transient struct{ error }

func (p transient) Unwrap() error { return p.error }

const (
	joinTimeout         = 30 * time.Second // bounds the retries after transient errors
	joinWithFileTimeout = 10 * time.Second // bounds the wait for ZooKeeper if there is a file to start from
	probeTimeout        = time.Second
)

func (w *Workers) forever() string   { return w.cfg.Path + "/forever/" + w.addr }
func (w *Workers) temporary() string { return w.cfg.Path + "/temporary/" + w.addr }

// foreverNode is the data of the persistent znode of an address.
type foreverNode struct {
	Worker int64     `json:"worker"`
	Time   time.Time `json:"time"` // by its own clock, at the last report
}

// acquire joins through ZooKeeper or, when that is down, from the file.
func (w *Workers) acquire(ctx context.Context, l keygen.Layout) (*workerLease, error) {
	last, unused, err := w.readFile(l)
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
	limited, cancel := context.WithTimeout(ctx, joinWithFileTimeout)
	defer cancel()
	t, err := w.join(limited, l, last)
	if err == nil || ctx.Err() != nil || w.registry.client.answers(ctx, w.cfg.Path) {
		return t, err
	}
	w.recordAnswer(err)
	return w.resumeFromFile(l, *last, err)
}

// holder returns a name of the process at an address, for people.
func holder(addr string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("%s (%s/%d)", addr, host, os.Getpid())
}

// claim returns the request in the terms of a ledger.
func (w *Workers) claim(l keygen.Layout) workerid.Claim {
	return workerid.Claim{Namespace: w.cfg.Path, Layout: l, Former: w.cfg.Former}
}

func (w *Workers) request(l keygen.Layout, last *lastKnown) request {
	a := request{
		owner:  w.addr,
		holder: holder(w.addr),
		most:   int64(1)<<l.WorkerBits() - 1,
		clock:  l,
		claim:  w.claim(l),
		term:   w.cfg.term(),
		hold:   max(w.cfg.Hold, w.cfg.term()),
		// A process with a file may have used a worker id further than ZooKeeper knows.
		resumes: func(e entry) bool {
			return e.Until == e.Ceiling || last != nil && last.Worker == e.worker && last.Generation == e.Generation
		},
	}
	a.longest = a.hold
	if last != nil {
		a.above = last.Ceiling
	}
	return a
}

// join takes a worker id in ZooKeeper, once the clock is right and the address is free.
func (w *Workers) join(ctx context.Context, l keygen.Layout, last *lastKnown) (*workerLease, error) {
	a := w.request(l, last)
	if err := w.register(ctx, a, last); err != nil {
		return nil, err
	}
	first := a
	first.hold = a.term // the next report extends the hold, once the file is written
	e, err := w.registry.take(ctx, first)
	if err == nil {
		t := &workerLease{workers: w, request: a, worker: e.worker, entry: e, layout: l}
		if err = t.report(ctx, e, w.now()); err == nil {
			w.recordAnswer(nil)
			return t, nil
		}
	}
	return nil, errors.Join(err, w.leave(context.WithoutCancel(ctx)))
}

// register registers this process among the running ones if its clock is right. It retries
// after transient errors.
func (w *Workers) register(ctx context.Context, a request, last *lastKnown) error {
	limited, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for {
		err := w.checkClock(limited, a, last)
		if err == nil {
			err = w.announce(limited)
		}
		if !errors.As(err, new(transient)) && !errors.Is(err, errBusy) {
			return err
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("%w: %w: %w", keygen.ErrNoWorker, limited.Err(), err)
		case <-time.After(pauseBetween):
		}
	}
}

// checkClock compares the clock with the stored times, with ZooKeeper's and with those of the
// other processes. It returns an error when one of them cannot be read.
func (w *Workers) checkClock(ctx context.Context, a request, last *lastKnown) error {
	if _, err := w.registry.open(ctx, a); err != nil {
		return err
	}
	if err := w.checkPast(ctx, last); err != nil {
		return err
	}
	r, err := compare(w.now, func() (time.Time, error) { return w.registry.present(ctx) })
	if err != nil {
		return err
	}
	if r.differs(w.cfg.Threshold) {
		return fmt.Errorf("%w: it differs from ZooKeeper's by %v, more than %v; correct the clock", ErrClocksDiffer, r.ahead, w.cfg.Threshold)
	}
	return w.checkPeers(ctx)
}

// checkPast refuses a clock that is behind the last time stored for this address or in the
// file.
func (w *Workers) checkPast(ctx context.Context, last *lastKnown) error {
	now := w.now()
	if last != nil && now.Before(last.Written) {
		return behind(now, last.Written, w.cfg.File)
	}
	at, err := w.registry.client.find(ctx, w.forever())
	if at == nil || err != nil {
		return err
	}
	var f foreverNode
	if err := json.Unmarshal(at.data, &f); err != nil {
		return fmt.Errorf("%s contains no time (%w); delete it when the clock is right", w.forever(), err)
	}
	if now.Before(f.Time) {
		return behind(now, f.Time, w.forever())
	}
	return nil
}

func behind(now, before time.Time, where string) error {
	return fmt.Errorf("%w: it reads %v, but according to %s it was already %v; correct the clock or, if the stored time was wrong, delete %s",
		keygen.ErrClockRollback, now.UTC(), where, before.UTC(), where)
}

// checkPeers compares the clock with the average of those of the running processes.
func (w *Workers) checkPeers(ctx context.Context) error {
	if err := w.registry.client.createPath(ctx, w.cfg.Path+"/temporary"); err != nil {
		return err
	}
	addrs, _, err := w.registry.client.children(ctx, w.cfg.Path+"/temporary")
	if err != nil {
		return fmt.Errorf("list the running processes: %w", err)
	}
	addrs = slices.DeleteFunc(addrs, func(addr string) bool { return addr == w.addr })
	if len(addrs) == 0 {
		return nil
	}
	r, err := average(ctx, w.now, addrs)
	if err != nil {
		return transient{fmt.Errorf("%w: none of the %d other processes answers with its time: %w", ErrClocksDiffer, len(addrs), err)}
	}
	if r.differs(w.cfg.Threshold) {
		return fmt.Errorf("%w: it differs from the average of the other processes (%d are registered) by %v, more than %v; correct the clock", ErrClocksDiffer, len(addrs), r.ahead, w.cfg.Threshold)
	}
	return nil
}

// announce registers this process for as long as its session lasts.
func (w *Workers) announce(ctx context.Context) error {
	won, err := w.registry.client.add(ctx, w.temporary(), []byte(holder(w.addr)), ephemeral)
	if won || err != nil {
		return err
	}
	if ours, err := w.registered(ctx); ours || err != nil {
		return err
	}
	return transient{fmt.Errorf("another process is registered at %s, or was killed and its session has not ended yet; give each process its own address", w.addr)}
}

// registered returns true when the registration belongs to the session of this process.
func (w *Workers) registered(ctx context.Context) (bool, error) {
	stat, err := w.registry.client.exists(ctx, w.temporary())
	return stat != nil && stat.EphemeralOwner == w.registry.client.nodes.session(), err
}

// leave ends the registration.
func (w *Workers) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if ours, err := w.registered(ctx); !ours || err != nil {
		return err
	}
	return w.registry.client.removeIfExists(ctx, w.temporary(), anyVersion)
}

// resumeFromFile continues with the file's worker id. No other process issues ids with it
// before the time that ZooKeeper stored, whatever happened since.
func (w *Workers) resumeFromFile(l keygen.Layout, last lastKnown, down error) (*workerLease, error) {
	now := w.now()
	if now.Before(last.Written) {
		return nil, behind(now, last.Written, w.cfg.File)
	}
	e := entry{worker: last.Worker, notBefore: max(last.Ceiling, l.Tick(now))}
	e.Generation, e.Until = last.Generation, last.Until
	e.Ceiling = min(e.notBefore+int64(w.cfg.term()/l.Unit), last.Until)
	if e.Ceiling <= e.notBefore {
		return nil, fmt.Errorf("%w: the worker id of %s was held until %v; wait for ZooKeeper: %w", keygen.ErrNoWorker, w.cfg.File, l.At(last.Until), down)
	}
	if err := w.writeFile(l, e, now); err != nil {
		return nil, err
	}
	return &workerLease{workers: w, request: w.request(l, &last), worker: e.worker, entry: e, layout: l, reported: now}, nil
}
