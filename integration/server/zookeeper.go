// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/shardid/shardid/internal/testwait"
)

// ZooKeeper is one private server, reached at [ZooKeeper.Addr] without a
// password. Addr may be called at any time, by any goroutine; Kill, Start and
// Stop not at the same time as each other.
type ZooKeeper struct{ *instance }

// StartZooKeeper makes an empty server and returns once it answers. The settings
// are lines of zoo.cfg, "tickTime=100" say, and override the usual ones. The
// caller must Stop it.
//
// ctx bounds the start, not the server's life.
func StartZooKeeper(ctx context.Context, settings ...string) (*ZooKeeper, error) {
	i, err := zooKeeper.start(ctx, settings)
	if err != nil {
		return nil, err
	}
	return &ZooKeeper{i}, nil
}

// RunZooKeeper is [StartZooKeeper] for a test or benchmark: a server that does
// not start fails it, and the server is stopped when it ends. A test that fails
// is shown the end of the server's log.
func RunZooKeeper(tb testing.TB, settings ...string) *ZooKeeper {
	tb.Helper()
	return &ZooKeeper{zooKeeper.run(tb, settings)}
}

// RunZooKeeperEnsemble is [RunZooKeeper] for n servers of one ensemble. It returns when each of them
// serves clients. A server that was killed starts again only beside enough others for a majority.
func RunZooKeeperEnsemble(tb testing.TB, size int, settings ...string) []*ZooKeeper {
	tb.Helper()
	var members []string
	for n := range size {
		members = append(members, fmt.Sprintf("server.%d=%s:%d:%d", n+1, loopback, memberPort(tb), memberPort(tb)))
	}
	settings = slices.Concat([]string{"initLimit=25", "syncLimit=25"}, members, settings)
	servers, errs := make([]*ZooKeeper, size), make([]error, size)
	var starting sync.WaitGroup
	for n := range servers {
		k := zooKeeper
		k.configure = func(i *instance) error {
			return errors.Join(writeZooCfg(i), os.WriteFile(filepath.Join(i.dataDir(), "myid"), []byte(strconv.Itoa(n+1)), 0o600))
		}
		starting.Go(func() {
			var i *instance
			if i, errs[n] = k.start(tb.Context(), settings); errs[n] == nil {
				servers[n] = &ZooKeeper{i}
				i.stopAfter(tb)
			}
		})
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
	return servers
}

// Leads reports whether the server leads its ensemble.
func (z *ZooKeeper) Leads(ctx context.Context) bool {
	answer, err := fourLetters(z.port).ask(ctx, "srvr")
	return err == nil && bytes.Contains(answer, []byte("Mode: leader"))
}

// Addr is the server's host and port. It stays the same when the server is
// killed and started again.
func (z *ZooKeeper) Addr() string { return address(z.port) }

// Log returns the path of the server's transaction log. It has all writes of clients since the first
// start, and the server reads it when it starts.
func (z *ZooKeeper) Log() string { return filepath.Join(z.dataDir(), logDir, "log.1") }

// SteadySession is a session timeout that a busy machine does not reach. A client
// regards its connection as lost after two thirds of the timeout without an answer.
const SteadySession = 30 * time.Minute

// Open returns a client with an established session; the test closes it at its end. The session ends
// after the timeout without a connection. The server allows no timeout below
// two of its ticks, 400 ms.
func (z *ZooKeeper) Open(tb testing.TB, session time.Duration) *zk.Conn {
	tb.Helper()
	c, err := DialZooKeeper(z.Addr(), session)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	testwait.Until(tb, "a session of ZooKeeper", func() bool { return c.State() == zk.StateHasSession })
	return c
}

// DialZooKeeper returns a client of a server, or of several with commas between their addresses. It
// connects in the background. By default the client waits a second for a connection, which is too
// short on a busy machine, and seven session timeouts for the answer to its first message, which a
// starting server may never send.
func DialZooKeeper(addr string, session time.Duration) (*zk.Conn, error) {
	last := &greeted{limit: answerLimit}
	dial := func(network, addr string, _ time.Duration) (net.Conn, error) {
		conn, err := (&net.Dialer{Timeout: startLimit}).DialContext(context.Background(), network, addr)
		if err != nil {
			return nil, err
		}
		next := &greeted{Conn: conn, limit: answerLimit}
		if !last.answered {
			next.limit = min(2*last.limit, startLimit)
		}
		last = next
		return next, nil
	}
	c, _, err := zk.Connect(strings.Split(addr, ","), session, zk.WithLogger(silent{}), zk.WithDialer(dial))
	return c, err
}

// greeted is a connection that is closed when the first answer takes too long.
type greeted struct {
	net.Conn

	limit    time.Duration
	answered bool
}

func (g *greeted) SetReadDeadline(at time.Time) error {
	if first := time.Now().Add(g.limit); !g.answered && (at.IsZero() || at.After(first)) {
		at = first
	}
	return g.Conn.SetReadDeadline(at)
}

func (g *greeted) Read(into []byte) (n int, err error) {
	n, err = g.Conn.Read(into)
	g.answered = g.answered || n > 0
	return n, err
}

// silent keeps the client from writing to the standard error stream.
type silent struct{}

func (silent) Printf(string, ...any) {}

var zooKeeper = kind{
	name:      "zookeeper",
	program:   program{"java", []string{"/usr/lib/jvm/*/bin"}, "default-jre-headless libzookeeper-java"},
	configure: writeZooCfg,
	args:      zooKeeperArgs,
	asker:     func(port int) (asker, error) { return fourLetters(port), nil },

	portTaken: "Address already in use",
}

// javaDir is the directory of jars on Debian.
const javaDir = "/usr/share/java"

// jars are the jars that a server loads; the package has others for its tools.
var jars = []string{
	"zookeeper", "zookeeper-jute", "netty-all", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java", "log4j-1.2", "commons-cli", "commons-io",
}

func zooCfg(i *instance) string { return filepath.Join(i.dir.path, "zoo.cfg") }

// logDir is the directory below dataDir in which the server keeps its files.
const logDir = "version-2"

func writeZooCfg(i *instance) error {
	for _, jar := range jars {
		if _, err := os.Stat(filepath.Join(javaDir, jar+".jar")); err != nil {
			return fmt.Errorf("ZooKeeper is not installed: %w; `make test` installs it on Debian and its kin, or do it yourself: apt-get install %s",
				err, i.kind.program.packages)
		}
	}
	lines := append([]string{
		"dataDir=" + i.dataDir(),
		"clientPortAddress=" + loopback,
		fmt.Sprint("clientPort=", i.port),
		"tickTime=200",
		"maxClientCnxns=0",
		fmt.Sprint("maxSessionTimeout=", SteadySession.Milliseconds()),
		"admin.enableServer=false",
		"4lw.commands.whitelist=conf,srvr",
	}, i.settings...)
	return os.WriteFile(zooCfg(i), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// zooKeeperArgs make the Java server start faster. It does not
// sync to disk, because writes survive a kill of the process anyway.
func zooKeeperArgs(i *instance) []string {
	paths := make([]string, 0, len(jars))
	for _, jar := range jars {
		paths = append(paths, filepath.Join(javaDir, jar+".jar"))
	}
	return []string{
		"-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Djava.io.tmpdir=" + i.tmpDir(),
		"-Dzookeeper.forceSync=no",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", strings.Join(paths, ":"),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", zooCfg(i),
	}
}

// fourLetters sends one of ZooKeeper's four-letter commands to the server on a port.
type fourLetters int

func (f fourLetters) dataDir(ctx context.Context) (string, error) {
	answer, err := f.ask(ctx, "conf")
	if err != nil {
		return "", err
	}
	return dataDirIn(answer)
}

func (f fourLetters) ask(ctx context.Context, command string) ([]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(int(f)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := conn.Write([]byte(command)); err != nil {
		return nil, err
	}
	return io.ReadAll(conn)
}

// dataDirIn finds the data directory in the answer to conf, without the part
// that the server adds to it.
func dataDirIn(answer []byte) (string, error) {
	for line := range bytes.Lines(answer) {
		if dir, found := strings.CutPrefix(string(line), "dataDir="); found {
			return filepath.Dir(strings.TrimSpace(dir)), nil
		}
	}
	return "", errors.New("the server says " + string(bytes.TrimSpace(answer)))
}

func (f fourLetters) Close() error { return nil }
