// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"strings"
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
