// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// startLimit ends the wait for a server that hangs while it starts. A busy
	// machine may take minutes for a start that takes a second on an idle one.
	startLimit = 15 * time.Minute
	// answerLimit limits the first query, because some servers accept a connection
	// while they start and never answer it. Each further query has twice the time.
	answerLimit = time.Second
	tryEvery    = 5 * time.Millisecond

	logTail = 16 << 10 // bytes of the error log that an error quotes

	loopback = "127.0.0.1"
)

// errPortTaken says that another process listens on the port. Another port may be free.
var errPortTaken = errors.New("the port is taken")

// instance is one private server of any kind.
type instance struct {
	kind     kind
	program  string
	user     *account
	settings []string // additional settings of the test
	environ  []string // additional environment variables of the test
	dir      *runDir
	port     int
	tenant   string   // set for a server that other tests share; the fields below belong to its owner then
	rooms    sync.Map // the names of a tenant's databases
	proc     *process // nil before the first start
}

// start starts a server of the kind with an empty data directory and returns
// when it answers queries.
func (k kind) start(ctx context.Context, settings []string) (*instance, error) {
	program, err := k.program.find()
	if err != nil {
		return nil, err
	}
	user, err := k.account()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	template, err := k.template(ctx, program)
	if err != nil {
		return nil, err
	}
	dir, err := newRunDir(k.name)
	if err != nil {
		return nil, err
	}
	i := &instance{kind: k, program: program, user: user, settings: settings, dir: dir}
	if err := i.firstStart(ctx, template); err != nil {
		return nil, errors.Join(err, i.Stop())
	}
	return i, nil
}

// firstStart claims a port and tries to start the server on it. Another program may listen
// there, or may begin to before the server binds the port.
func (i *instance) firstStart(ctx context.Context, template string) error {
	if err := i.makeData(template); err != nil {
		return err
	}
	if err := os.Mkdir(i.tmpDir(), 0o700); err != nil {
		return fmt.Errorf("make the server's tmpdir: %w", err)
	}
	if err := i.user.takeOver(i.dir.path); err != nil {
		return fmt.Errorf("give the server its files: %w", err)
	}
	for {
		port, err := claims.claim(serverPorts)
		if err != nil {
			return err
		}
		i.port = port
		err = i.Start(ctx)
		if !errors.Is(err, errPortTaken) || ctx.Err() != nil {
			return err
		}
		claims.release(port)
	}
}

// makeData copies the template, or makes an empty directory where there is none.
func (i *instance) makeData(template string) error {
	if template == "" {
		return os.Mkdir(i.dataDir(), 0o700)
	}
	if err := copyData(i.dataDir(), template); err != nil {
		return fmt.Errorf("copy the template data directory: %w", err)
	}
	return nil
}

// Kill ends the server at once, as kill -9 does, and returns when its processes
// are gone. Killing a server that does not run is no error.
func (i *instance) Kill() {
	i.mustBeOwn()
	if i.proc == nil {
		return
	}
	i.proc.kill()
	killAllIn(i.dataDir()) // all processes of a server work there
}

// Signal sends a signal to the server's process, SIGSTOP say. A server that is stopped accepts
// connections, as the kernel does that, and does not answer.
func (i *instance) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	i.mustBeOwn()
	if err := i.proc.cmd.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}

// Start starts a killed or crashed server again, on the same data and port, and
// returns once it answers queries, after its crash recovery.
func (i *instance) Start(ctx context.Context) error {
	i.mustBeOwn()
	if i.proc != nil && i.proc.running() {
		return fmt.Errorf("%s is already running; Kill it before starting it again", i.kind.program.name)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	proc, err := i.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", i.program, err)
	}
	i.proc = proc
	if err := i.waitReady(ctx); err != nil {
		i.Kill()
		return fmt.Errorf("start %s on port %d: %w; its error log ends with:\n%s", i.kind.program.name, i.port, err, i.logTail())
	}
	return nil
}

// Stop kills the server and removes its data. It may be called twice. The
// server cannot be started again afterwards.
func (i *instance) Stop() error {
	i.Kill()
	claims.release(i.port)
	return i.dir.remove()
}

func (i *instance) launch() (*process, error) {
	if i.kind.configure != nil {
		if err := i.kind.configure(i); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(i.logFile())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()                // the child has its own descriptor
	cmd := exec.Command(i.program, i.kind.args(i)...) //nolint:noctx // the server outlives the call that starts it
	cmd.Dir = i.dir.path
	cmd.Env = append(plainEnviron(), i.environ...)
	cmd.Stderr = log
	i.user.run(cmd)
	return startProcess(cmd)
}

// ZoneVar names the environment variable with the time zone of the machine that servers
// which start from now on believe to be on.
const ZoneVar = "SHARDID_TEST_ZONE"

// plainEnviron makes servers log in English, because tests search their logs, and use
// UTC unless a test sets ZoneVar.
func plainEnviron() []string {
	return append(os.Environ(), "LC_ALL=C", "TZ="+cmp.Or(os.Getenv(ZoneVar), "UTC"))
}

func (i *instance) waitReady(ctx context.Context) error {
	server, err := i.kind.asker(i.port)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	var watch sync.WaitGroup
	defer watch.Wait()
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	watch.Go(func() { // a query to a process that has ended may never fail by itself
		select {
		case <-i.proc.done:
			cancel()
		case <-alive.Done():
		}
	})
	limit := answerLimit
	for {
		noAnswer := i.answers(alive, server, limit)
		if noAnswer == nil {
			return nil
		}
		if errors.Is(noAnswer, context.DeadlineExceeded) {
			limit = min(2*limit, startLimit)
		}
		select {
		case <-i.proc.done:
			return i.ended()
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), noAnswer)
		case <-tick.C:
		}
	}
}

// answers reports whether this server answers, and not the server of another test on a taken port.
func (i *instance) answers(ctx context.Context, server asker, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dataDir, err := server.dataDir(ctx)
	if err != nil {
		return fmt.Errorf("first query: %w", err)
	}
	if filepath.Clean(dataDir) != i.dataDir() {
		return fmt.Errorf("%w by the server of %s", errPortTaken, dataDir)
	}
	return nil
}

// ended returns why a server ended that never answered.
func (i *instance) ended() error {
	if strings.Contains(i.logTail(), i.kind.portTaken) {
		return errPortTaken
	}
	return fmt.Errorf("%s ended by itself: %w", i.kind.program.name, i.proc.err)
}

func (i *instance) mustBeOwn() {
	if i.tenant != "" {
		panic("bug: a test that kills or starts its server shares it; RunMariaDB and its like give a private one")
	}
}

func (i *instance) open(database string) (*sql.DB, error) {
	return i.kind.open(i.port, i.named(database))
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

func (i *instance) dataDir() string { return i.dir.data() }

// tmpDir is a directory of this server alone, because a starting mariadbd removes all temporary tables
// in its tmpdir, and another server whose tables these were would crash.
func (i *instance) tmpDir() string  { return filepath.Join(i.dir.path, "tmp") }
func (i *instance) logFile() string { return filepath.Join(i.dir.path, "err.log") }

// logTail returns the end of the error log of the latest start.
func (i *instance) logTail() string { return tail(i.logFile()) }

// tail returns the end of a log.
func tail(file string) string {
	log, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-logTail):])
}
