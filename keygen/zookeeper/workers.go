// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/shardid/shardid/internal/statefile"
	"github.com/shardid/shardid/keygen"
)

// WorkersConfig configures [Workers].
type WorkersConfig struct {
	// Path is the znode below which everything is stored: "/snowflake/orders", say. Processes
	// whose ids must differ use the same one. It is required.
	Path string

	// Addr is the IP address and port of this process: "10.0.0.7:7070", say. It is the name of
	// the process in ZooKeeper. The process serves its time at it for the others, so the port
	// must be free. It is required. With port 0 the system chooses a port, and the process has
	// another name after each start.
	Addr string

	// Report is the interval at which the process stores its time and up to which tick it may
	// issue ids; that tick is three intervals ahead. Defaults to 3 seconds. All processes must
	// use the same one.
	Report time.Duration

	// Threshold is the largest accepted difference, at the start, of the clock from the average
	// of the other processes' clocks and from ZooKeeper's, at most twice Report. Defaults to
	// Report.
	Threshold time.Duration

	// File is the local file from which the process starts and continues when ZooKeeper is
	// down. Defaults to "": the process then continues for three times Report, and cannot
	// start.
	File string

	// Hold is how long the worker id belongs to the file after the last report, even after the
	// process has ended. For so long the process can do without ZooKeeper. It needs File, and
	// must be longer than three times Report. Defaults to an hour.
	Hold time.Duration

	// Now reads the clock that is compared and stored. Defaults to time.Now.
	Now func() time.Time

	// Former is the previous layout of the processes below Path, for a change of layouts as in
	// workerid.LeasedConfig. With a File, a worker id is held until Hold after the last report,
	// even after its process has ended.
	Former keygen.Layout

	// ACL is the ACL of the znodes. Defaults to permission for everybody.
	ACL []ACL

	// Observer is called at alarms and outages.
	Observer Observer
}

const (
	defaultReport = 3 * time.Second
	shortReport   = 100 * time.Millisecond
	defaultHold   = time.Hour

	// reports is the number of reports in the time that a report covers, so that two may fail.
	reports = 3
)

func (c WorkersConfig) withDefaults() WorkersConfig {
	if c.Report == 0 {
		c.Report = defaultReport
	}
	if c.Threshold == 0 {
		c.Threshold = c.Report
	}
	if c.Hold == 0 && c.File != "" {
		c.Hold = max(defaultHold, 2*c.term())
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// term is the distance from the present to the ceiling that a report writes.
func (c WorkersConfig) term() time.Duration { return reports * c.Report }

func (c WorkersConfig) validate() error {
	if err := checkPath(c.Path); err != nil {
		return fmt.Errorf("zookeeper: WorkersConfig.Path is %w", err)
	}
	host, _, err := net.SplitHostPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Errorf("zookeeper: WorkersConfig.Addr is %q; it must be the IP address and port of this process: %w", c.Addr, err)
	case net.ParseIP(host) == nil || net.ParseIP(host).IsUnspecified():
		return fmt.Errorf("zookeeper: WorkersConfig.Addr is %q; it must have an IP address at which other processes can reach this one", c.Addr)
	case c.Report < shortReport:
		return fmt.Errorf("zookeeper: WorkersConfig.Report is %v; it must be at least %v", c.Report, shortReport)
	case c.Threshold < 0 || c.Threshold > 2*c.Report:
		return fmt.Errorf("zookeeper: WorkersConfig.Threshold is %v; it must be at most twice Report, %v: a clock further ahead would be past the reported ticks", c.Threshold, 2*c.Report)
	case c.Former.Unit != 0 && c.Former.Validate() != nil:
		return fmt.Errorf("zookeeper: WorkersConfig.Former: %w", c.Former.Validate())
	case c.File == "" && c.Hold != 0:
		return errors.New("zookeeper: WorkersConfig.Hold needs File: without a file no record says how far the worker id was used")
	case c.File != "" && c.Hold <= c.term():
		return fmt.Errorf("zookeeper: WorkersConfig.Hold is %v; it must be longer than three times Report, %v", c.Hold, c.term())
	}
	return nil
}

// Workers gives one process its worker id, as Leaf-snowflake does. It is an
// assigner for one snowflake generator, safe for concurrent use.
type Workers struct {
	cfg      WorkersConfig
	registry registry
	addr     string // Addr with the actual port

	time *timeServer
	lock *os.File // the lock of File; nil without a File

	mu     sync.Mutex
	taken  bool // a lease is in force or being acquired
	closed bool
	down   time.Time // when ZooKeeper first failed to answer; zero while it answers
}

var _ keygen.Assigner = (*Workers)(nil)

// NewWorkers returns an assigner, which from now on serves its time at Addr and locks File. Its
// error names the setting that is wrong. It does not call ZooKeeper. The caller must close it
// after its generator.
func NewWorkers[S StatLike, A ACLLike](conn Conn[S, A], cfg WorkersConfig) (*Workers, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := connect(conn, cfg.ACL)
	if err != nil {
		return nil, err
	}
	w := &Workers{cfg: cfg, registry: registry{client: client, znodes: znodes{dir: cfg.Path}}}
	if cfg.File != "" {
		if w.lock, err = statefile.Lock(cfg.File + ".lock"); err != nil {
			return nil, fmt.Errorf("zookeeper: WorkersConfig.File: %w", err)
		}
	}
	if w.time, err = serveTime(cfg.Addr, cfg.Now); err != nil {
		return nil, errors.Join(err, w.unlock())
	}
	w.addr = w.time.listener.Addr().String()
	return w, nil
}

// Addr returns the address of this process in ZooKeeper, with the port that the system chose if
// Addr has port 0.
func (w *Workers) Addr() string { return w.addr }

// Close stops serving the time and unlocks the file. Close the generator first, because it
// returns the worker id. Close may be called twice.
func (w *Workers) Close() error {
	w.mu.Lock()
	closed := w.closed
	w.closed = true
	w.mu.Unlock()
	if closed || w.time == nil {
		return nil
	}
	return errors.Join(w.time.close(), w.unlock())
}

func (w *Workers) unlock() error {
	if w.lock == nil {
		return nil
	}
	return w.lock.Close()
}

// Acquire gives this process its worker id after the check of its clock: the one that it had
// before, if no other process can have used it since; the one that has been free longest; or
// one that was never used. It waits at most 30 seconds, while another process, or one that was
// killed a moment ago, is registered at the same address, and while other processes are
// registered but none answers with its time.
//
// The error wraps [keygen.ErrClockRollback] when the clock is behind the time that this address
// stored before, [ErrClocksDiffer] when it differs from those of the others, and
// [keygen.ErrNoWorker] when no worker id is free or this Workers has already given one that is
// still in use. With a file, ZooKeeper may be down.
func (w *Workers) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	if w.cfg.Report < l.Unit {
		return nil, fmt.Errorf("zookeeper: WorkersConfig.Report is %v; it must be at least the layout's unit, %v", w.cfg.Report, l.Unit)
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	t, err := w.acquire(ctx, l)
	if err != nil {
		w.end()
		return nil, fmt.Errorf("zookeeper: get a worker id for %s: %w", w.addr, err)
	}
	return t, nil
}

// begin marks that a lease is being acquired; there is one at a time.
func (w *Workers) begin() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return fmt.Errorf("zookeeper: %w: the Workers of %s is closed", keygen.ErrNoWorker, w.addr)
	case w.taken:
		return fmt.Errorf("zookeeper: %w: %s has its worker id already; a second generator in a process needs a Workers with another port", keygen.ErrNoWorker, w.addr)
	}
	w.taken = true
	return nil
}

func (w *Workers) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = false
}

// now returns the wall clock's time without the monotonic reading, which never goes back.
func (w *Workers) now() time.Time { return w.cfg.Now().Round(0) }

// recordAnswer records that ZooKeeper answered, or err if it did not.
func (w *Workers) recordAnswer(err error) {
	w.mu.Lock()
	since := w.down
	switch {
	case err == nil:
		w.down = time.Time{}
	case since.IsZero():
		w.down = time.Now()
	}
	w.mu.Unlock()
	switch {
	case err == nil && !since.IsZero():
		w.cfg.Observer.recovery(time.Since(since))
	case err != nil && since.IsZero():
		w.cfg.Observer.outage(err)
	}
}
