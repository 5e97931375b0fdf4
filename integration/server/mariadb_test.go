package server

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestTwoServersRunAtOnceWithDataOfTheirOwn(t *testing.T) {
	first, second := RunMariaDB(t), RunMariaDB(t)
	firstDB, secondDB := first.Open(t, "shop"), second.Open(t, "shop")
	mustExec(t, firstDB, "CREATE TABLE only_in_first (id BIGINT PRIMARY KEY)")

	if _, err := secondDB.ExecContext(t.Context(), "INSERT INTO only_in_first VALUES (1)"); err == nil {
		t.Error("the second server has the first one's table")
	}
	if first.DSN("") == second.DSN("") {
		t.Errorf("both servers have the DSN %s", first.DSN(""))
	}
}

func TestServerThatStartsLeavesTemporaryTablesOfOthersAlone(t *testing.T) {
	first, second := RunMariaDB(t), RunMariaDB(t)
	one, err := first.Open(t, "shop").Conn(t.Context()) // temporary tables belong to their connection
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	if _, err := one.ExecContext(t.Context(), "CREATE TEMPORARY TABLE basket (id BIGINT) ENGINE=Aria"); err != nil {
		t.Fatal(err)
	}

	second.Kill()
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	if _, err := one.ExecContext(t.Context(), "DROP TEMPORARY TABLE basket"); err != nil {
		t.Errorf("the first server lost its temporary table: %v", err)
	}
}

func TestCommittedRowSurvivesKillAndRestart(t *testing.T) {
	m := RunMariaDB(t)
	db := m.Open(t, "shop")
	mustExec(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	mustExec(t, db, "INSERT INTO orders VALUES (42)")
	before, pid := m.DSN("shop"), m.proc.cmd.Process.Pid

	m.Kill()
	assertGone(t, pid)
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("a killed server answered")
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}

	if id := queryInt(t, db, "SELECT id FROM orders"); id != 42 {
		t.Errorf("after the restart the committed row is %d, want 42", id)
	}
	if after := m.DSN("shop"); after != before {
		t.Errorf("the DSN changed from %s to %s", before, after)
	}
}

func TestStopLeavesNoProcessAndNoDirectory(t *testing.T) {
	m, err := StartMariaDB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second Stop finds nothing and says so to nobody
		if err := m.Stop(); err != nil {
			t.Fatal(err)
		}
	}

	assertGone(t, m.proc.cmd.Process.Pid)
	assertNoFile(t, m.dir.path)
	if conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address(m.port)); err == nil {
		t.Errorf("somebody still listens on %s", conn.RemoteAddr())
	}
}

func TestServerIsStoppedWhenItsTestEnds(t *testing.T) {
	var m *MariaDB
	t.Run("test", func(t *testing.T) { m = RunMariaDB(t) })

	assertGone(t, m.proc.cmd.Process.Pid)
	assertNoFile(t, m.dir.path)
}

func TestFlagsOverrideTheUsualOnes(t *testing.T) {
	plain, logging := RunMariaDB(t), RunMariaDB(t, "--log-bin", "--server-id=7")

	if on := queryInt(t, plain.Open(t, "shop"), "SELECT @@log_bin"); on != 0 {
		t.Error("the binary log is on without --log-bin")
	}
	if on := queryInt(t, logging.Open(t, "shop"), "SELECT @@log_bin"); on != 1 {
		t.Error("the binary log is off despite --log-bin")
	}
	if id := queryInt(t, logging.Open(t, "shop"), "SELECT @@server_id"); id != 7 {
		t.Errorf("@@server_id is %d, want 7", id)
	}
}

func TestStartErrorQuotesTheErrorLogAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := StartMariaDB(t.Context(), "--no-such-option")
	if err == nil || !strings.Contains(err.Error(), "unknown option '--no-such-option'") {
		t.Errorf("StartMariaDB says %v, want mariadbd's complaint about the option", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v (%v)", left, err)
	}
}

func TestStartOnTakenPortIsNotedAsSuch(t *testing.T) {
	holder, m := RunMariaDB(t), RunMariaDB(t)
	m.Kill()
	m.port = holder.port

	if err := m.Start(t.Context()); !errors.Is(err, errPortTaken) {
		t.Errorf("Start says %v, want %v", err, errPortTaken)
	}
}

func TestStartOfRunningServerIsRefused(t *testing.T) {
	m := RunMariaDB(t)
	if err := m.Start(t.Context()); err == nil {
		t.Error("a running server was started again")
	}
	if n := queryInt(t, m.Open(t, "shop"), "SELECT 1"); n != 1 {
		t.Error("the refused Start broke the server")
	}
}

func TestStartGivesUpWhenItsContextEnds(t *testing.T) {
	m := RunMariaDB(t)
	m.Kill()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := m.Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Start says %v, want %v", err, context.Canceled)
	}
	if m.proc.running() {
		t.Error("the server runs although Start failed")
	}
}

func TestMissingProgramIsAnErrorThatNamesThePackages(t *testing.T) {
	_, err := mariadbProgram("mariadbd-that-is-not-there").find()
	if err == nil || !strings.Contains(err.Error(), "apt-get install mariadb-server-core") {
		t.Errorf("find says %v, want the command that installs it", err)
	}
}

func TestProgramIsFoundOutsideOfPath(t *testing.T) {
	t.Setenv("PATH", "")
	if _, err := mariadb.program.find(); err != nil {
		t.Error(err)
	}
}

func assertGone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (signal 0: %v)", pid, err)
	}
}

func assertNoFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there (%v)", path, err)
	}
}
