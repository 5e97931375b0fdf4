// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"
	"testing"
)

func TestMySQLIsNotMariaDB(t *testing.T) {
	version := RunMySQL(t).version(t)
	if strings.Contains(version, "MariaDB") || !(strings.HasPrefix(version, "8.") || strings.HasPrefix(version, "9.")) {
		t.Errorf("the server is of version %s", version)
	}
}

func TestMySQLAndMariaDBRunAtOnce(t *testing.T) {
	my, maria := RunMySQL(t), RunMariaDB(t)
	mustExec(t, my.Open(t, "shop"), "CREATE TABLE only_in_mysql (id BIGINT PRIMARY KEY)")
	if _, err := maria.Open(t, "shop").ExecContext(t.Context(), "INSERT INTO only_in_mysql VALUES (1)"); err == nil {
		t.Error("MariaDB has MySQL's table")
	}
}

func TestFlagsOverrideTheUsualOnesOfMySQL(t *testing.T) {
	logging := RunMySQL(t, "--log-bin", "--server-id=7").Open(t, "shop")
	if on := queryInt(t, logging, "SELECT @@log_bin"); on != 1 {
		t.Error("the binary log is off despite --log-bin")
	}
	if id := queryInt(t, logging, "SELECT @@server_id"); id != 7 {
		t.Errorf("@@server_id is %d, want 7", id)
	}
}

func TestStartErrorQuotesTheErrorLogOfMySQL(t *testing.T) {
	_, err := StartMySQL(t.Context(), "--no-such-option")
	if err == nil || !strings.Contains(err.Error(), "unknown option '--no-such-option'") {
		t.Errorf("StartMySQL says %v, want mysqld's complaint about the option", err)
	}
}

func TestMissingMySQLIsAnErrorThatSaysHowToInstallIt(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where macOS keeps caches
	_, err := StartMySQL(t.Context())
	if err == nil || !strings.Contains(err.Error(), ".ci/install-mysql") {
		t.Errorf("StartMySQL says %v, want the script that installs it", err)
	}
}
