package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// startLimit ends the wait for a server that hangs while starting.
	startLimit = time.Minute
	// answerLimit is for one try at a query: longer than a loaded machine
	// needs, short enough to notice soon that the process has ended.
	answerLimit = time.Second
	tryEvery    = 5 * time.Millisecond

	// Ports are picked below the range from which Linux (from 32768) and macOS
	// (from 49152) take those of outgoing connections; otherwise a client could
	// sit on a killed server's port when it starts again.
	firstPort    = 20000
	ports        = 10000
	portAttempts = 20

	logTail = 16 << 10 // bytes of the error log that an error quotes
)

// errPortTaken: another process listens on the port; another one may be free.
var errPortTaken = errors.New("the port is taken")

// MariaDB is one private server, reached at [MariaDB.DSN] by user root without
// a password. DSN may be called at any time, by any goroutine; Kill, Start and
// Stop not at the same time as each other.
type MariaDB struct {
	program string
	flags   []string
	dir     *runDir
	port    int
	proc    *process // nil before the first start
}

// StartMariaDB makes a server with an empty data directory and returns once it
// answers queries. The flags are passed to mariadbd after the usual ones, and
// so override them: "--log-bin", "--server-id=2". The caller must Stop it.
//
// ctx bounds the start, not the server's life.
func StartMariaDB(ctx context.Context, flags ...string) (*MariaDB, error) {
	program, err := findProgram("mariadbd")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	template, err := mariadbTemplate(ctx, program)
	if err != nil {
		return nil, err
	}
	dir, err := newRunDir("mariadb")
	if err != nil {
		return nil, err
	}
	m := &MariaDB{program: program, flags: flags, dir: dir}
	if err := m.firstStart(ctx, template); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// firstStart looks for a free port by trying: a port that was found free
// beforehand could be taken by the time the server binds it.
func (m *MariaDB) firstStart(ctx context.Context, template string) error {
	if err := os.CopyFS(m.dataDir(), os.DirFS(template)); err != nil {
		return fmt.Errorf("copy the template data directory: %w", err)
	}
	if err := os.Mkdir(m.tmpDir(), 0o700); err != nil {
		return fmt.Errorf("make the server's tmpdir: %w", err)
	}
	var err error
	for range portAttempts {
		m.port = firstPort + rand.IntN(ports)
		if err = m.Start(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return err
}

// DSN is the data source name, in go-sql-driver's form and without parameters,
// of the named database; "" names none. The database need not exist. The DSN
// stays the same when the server is killed and started again.
func (m *MariaDB) DSN(database string) string {
	return m.config(database).FormatDSN()
}

// Kill ends the server at once, as kill -9 does, and returns when its process
// is gone. Killing a server that does not run is no error.
func (m *MariaDB) Kill() {
	if m.proc != nil {
		m.proc.kill()
	}
}

// Start starts a killed or crashed server again, on the same data and port, and
// returns once it answers queries, after its crash recovery.
func (m *MariaDB) Start(ctx context.Context) error {
	if m.proc != nil && m.proc.running() {
		return errors.New("mariadbd is already running; Kill it before starting it again")
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	proc, err := m.launch()
	if err != nil {
		return fmt.Errorf("start %s: %w", m.program, err)
	}
	m.proc = proc
	if err := m.waitReady(ctx); err != nil {
		m.Kill()
		return fmt.Errorf("start mariadbd on port %d: %w; its error log ends with:\n%s", m.port, err, m.logTail())
	}
	return nil
}

// Stop kills the server and removes its data. It may be called twice. The
// server cannot be started again afterwards.
func (m *MariaDB) Stop() error {
	m.Kill()
	return m.dir.remove()
}

func (m *MariaDB) launch() (*process, error) {
	log, err := os.Create(m.logFile())
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()          // the child has its own descriptor
	cmd := exec.Command(m.program, m.args()...) //nolint:noctx // the server outlives the call that starts it
	cmd.Stderr = log
	return startProcess(cmd)
}

// args keeps the server small and its start fast. Durability is left as a
// production server has it: what was committed survives a kill.
func (m *MariaDB) args() []string {
	args := []string{
		"--no-defaults", // must come first
		"--datadir=" + m.dataDir(),
		"--tmpdir=" + m.tmpDir(),
		"--bind-address=127.0.0.1",
		"--port=" + strconv.Itoa(m.port),
		"--socket=s.sock", // below datadir; absolute it could exceed the 108 bytes a socket path may have
		"--pid-file=mariadb.pid",
		"--skip-name-resolve",
		"--innodb-buffer-pool-size=32M",
		innodbLogSize,
		"--innodb-buffer-pool-load-at-startup=0",
		"--innodb-buffer-pool-dump-at-shutdown=0",
		"--performance-schema=0",
		"--aria-pagecache-buffer-size=1M",
		"--key-buffer-size=1M",
	}
	return append(append(args, runAsRoot()...), m.flags...)
}

func (m *MariaDB) waitReady(ctx context.Context) error {
	db, err := m.open("")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	for {
		noAnswer := m.answers(ctx, db)
		if noAnswer == nil {
			return nil
		}
		select {
		case <-m.proc.done:
			return m.ended()
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), noAnswer)
		case <-tick.C:
		}
	}
}

// answers reports whether it is this server that answers: on a taken port
// another test's server would.
func (m *MariaDB) answers(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var dataDir string
	if err := db.QueryRowContext(ctx, "SELECT @@datadir").Scan(&dataDir); err != nil {
		return fmt.Errorf("first query: %w", err)
	}
	if filepath.Clean(dataDir) != m.dataDir() {
		return fmt.Errorf("%w by the server of %s", errPortTaken, dataDir)
	}
	return nil
}

// ended says why a server that never answered has gone.
func (m *MariaDB) ended() error {
	if strings.Contains(m.logTail(), "Bind on TCP/IP port") {
		return errPortTaken
	}
	return fmt.Errorf("mariadbd ended by itself: %w", m.proc.err)
}

func (m *MariaDB) open(database string) (*sql.DB, error) {
	connector, err := mysql.NewConnector(m.config(database))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func (m *MariaDB) config(database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User = "root"
	c.Net = "tcp"
	c.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(m.port))
	c.DBName = database
	c.Logger = &mysql.NopLogger{} // connections to a killed server break; that is no news
	return c
}

func (m *MariaDB) dataDir() string { return filepath.Join(m.dir.path, "data") }

// tmpDir is the server's own: a starting mariadbd removes the temporary tables
// it finds in its tmpdir, and a server whose tables these were crashes.
func (m *MariaDB) tmpDir() string  { return filepath.Join(m.dir.path, "tmp") }
func (m *MariaDB) logFile() string { return filepath.Join(m.dir.path, "err.log") }

// logTail is the end of the error log of the latest start.
func (m *MariaDB) logTail() string {
	log, err := os.ReadFile(m.logFile())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-logTail):])
}
