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
	// Path is the znode below which everything is, "/snowflake/orders" say. The
	// processes whose ids must differ share one. It is required.
	Path string

	// Addr is the IP address and port of this process, "10.0.0.7:7070" say: its
	// name in ZooKeeper, and where it tells its time to the others, so a port of its
	// own. It is required. With port 0 the system chooses a port, and the process is
	// another one after each start.
	Addr string

	// Report is how often the process writes down that it lives, what time it has
	// and how far it may issue ids: three times as long. Defaults to 3 seconds. All
	// processes use the same one.
	Report time.Duration

	// Threshold is how far the clock may be from the average of the other
	// processes' and from ZooKeeper's when it starts, at most twice Report. Defaults
	// to Report.
	Threshold time.Duration

	// File is the local file from which the process starts, and goes on, when
	// ZooKeeper is down. Defaults to none: then it goes on for three times Report
	// and does not start.
	File string

	// Hold is how long the worker id stays this file's after the last report, also
	// when the process has ended; so long it does without ZooKeeper. It needs File,
	// and is longer than three times Report. Defaults to an hour.
	Hold time.Duration

	// Now reads the clock that is compared and written down. Defaults to time.Now.
	Now func() time.Time

	// Former is the layout that the processes below Path had before, for a change of
	// layouts: as in workerid.LeasedConfig. With a File a worker id is held until Hold
	// after the last report, also when its process has ended.
	Former keygen.Layout

	// ACL is who may use the znodes. Defaults to everybody.
	ACL []ACL

	// Observer is told of alarms and outages.
	Observer Observer
}

const (
	defaultReport = 3 * time.Second
	shortReport   = 100 * time.Millisecond
	defaultHold   = time.Hour

	// reports is how many fit into the time that a report covers, so that two may
	// fail.
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

// term is how far above the present a report raises the ceiling.
func (c WorkersConfig) term() time.Duration { return reports * c.Report }

func (c WorkersConfig) validate() error {
	if err := checkPath(c.Path); err != nil {
		return fmt.Errorf("zookeeper: WorkersConfig.Path is %w", err)
	}
	host, _, err := net.SplitHostPort(c.Addr)
	switch {
	case err != nil:
		return fmt.Errorf("zookeeper: WorkersConfig.Addr is %q; it is the IP address and port of this process: %w", c.Addr, err)
	case net.ParseIP(host) == nil || net.ParseIP(host).IsUnspecified():
		return fmt.Errorf("zookeeper: WorkersConfig.Addr is %q; it needs an IP address at which the others reach this process", c.Addr)
	case c.Report < shortReport:
		return fmt.Errorf("zookeeper: WorkersConfig.Report is %v; the shortest is %v", c.Report, shortReport)
	case c.Threshold < 0 || c.Threshold > 2*c.Report:
		return fmt.Errorf("zookeeper: WorkersConfig.Threshold is %v; it is at most twice Report, %v: a clock further ahead would be beyond its reports", c.Threshold, 2*c.Report)
	case c.Former.Unit != 0 && c.Former.Validate() != nil:
		return fmt.Errorf("zookeeper: WorkersConfig.Former: %w", c.Former.Validate())
	case c.File == "" && c.Hold != 0:
		return errors.New("zookeeper: WorkersConfig.Hold needs File: without one nobody can know how far the worker id was used")
	case c.File != "" && c.Hold <= c.term():
		return fmt.Errorf("zookeeper: WorkersConfig.Hold is %v; it is longer than three times Report, %v", c.Hold, c.term())
	}
	return nil
}

// Workers gives one process its worker id, as Leaf-snowflake does. It is an
// assigner for one snowflake generator, safe for concurrent use.
type Workers struct {
	cfg  WorkersConfig
	book book
	addr string // Addr with the port in use

	time *timekeeper
	lock *os.File // of File; nil without one

	mu     sync.Mutex
	taken  bool // a lease is in force, or on the way
	closed bool
	down   time.Time // when ZooKeeper did not answer first; zero while it does
}

var _ keygen.Assigner = (*Workers)(nil)

// NewWorkers returns an assigner, which tells its time at Addr and holds File
// from now on, or an error that names the setting that is wrong. It does not ask
// ZooKeeper yet. It has to be closed, after its generator.
func NewWorkers[S StatLike, A ACLLike](conn Conn[S, A], cfg WorkersConfig) (*Workers, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := connect(conn, cfg.ACL)
	if err != nil {
		return nil, err
	}
	w := &Workers{cfg: cfg, book: book{client: client, dir: cfg.Path}}
	if cfg.File != "" {
		if w.lock, err = statefile.Lock(cfg.File + ".lock"); err != nil {
			return nil, fmt.Errorf("zookeeper: WorkersConfig.File: %w", err)
		}
	}
	if w.time, err = keepTime(cfg.Addr, cfg.Now); err != nil {
		return nil, errors.Join(err, w.unlock())
	}
	w.addr = w.time.listener.Addr().String()
	return w, nil
}

// Addr returns the address under which this process is known, with the port that
// the system chose where Addr left that to it.
func (w *Workers) Addr() string { return w.addr }

// Close stops telling the time and lets go of the file. Close the generator
// first: it hands the worker id back. Close may be called twice.
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

// Acquire gives this process its worker id once its clock has been found right:
// the one that it had before if nobody can have used it since, the one that
// rested longest, or one that nobody had. It waits while another process, or
// one that was killed a moment ago, is registered at the same address, and while
// all others are registered but none tells its time, for 30 seconds at most.
//
// The error wraps [keygen.ErrClockRollback] when the clock is behind what this
// address had written down before, [ErrClocksDiffer] when it is not what the
// others' are, and [keygen.ErrNoWorker] when there is none or this Workers has
// given one that is still in use. With a file, ZooKeeper may be down. An error
// never comes with a worker id.
func (w *Workers) Acquire(ctx context.Context, l keygen.Layout) (keygen.Lease, error) {
	if w.cfg.Report < l.Unit {
		return nil, fmt.Errorf("zookeeper: WorkersConfig.Report is %v; a layout of %v units needs at least that", w.cfg.Report, l.Unit)
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

// begin notes that a lease is on the way, of which there is one at a time.
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

// now reads the wall clock, without the monotonic one, which never goes back.
func (w *Workers) now() time.Time { return w.cfg.Now().Round(0) }

// answered notes that ZooKeeper did, or err if it did not.
func (w *Workers) answered(err error) {
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
