// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"database/sql"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testwait"
)

// file makes a database of SQLite.
func file(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ids.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	prepare(t, db)
	return path
}

const id = "/api/segment/get/order"

// The change alters neither size nor time of the file, so that only the signal makes the server
// read it again.
func TestATokenIsReadAgainOnSIGHUP(t *testing.T) {
	const first, second = "0123456789abcdef", "fedcba9876543210"
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(first), 0o644); err != nil { //nolint:gosec // it is to be warned of
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, file(t), "--token-file", path)
	if log := s.log.String(); !strings.Contains(log, "others can read the token file; chmod 600 it") {
		t.Errorf("it does not warn: %s", log)
	}
	if err := os.WriteFile(path, []byte(second), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	if body, status := s.ask(t, id, first); status != http.StatusOK {
		t.Errorf("the change was seen without a signal, which the test is not about: %d %s", status, body)
	}
	if err := s.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the second token is known", func() bool {
		_, status := s.ask(t, id, second)
		return status == http.StatusOK
	})
	if body, status := s.ask(t, id, first); status != http.StatusUnauthorized {
		t.Errorf("%d %s", status, body)
	}
}

func TestEverybodyIsServedWithNoAuthAlone(t *testing.T) {
	ids := file(t)
	for name, flags := range map[string][]string{
		"--no-auth":      {"--listen", "0.0.0.0:0"},
		"exclude each":   {"--listen", "0.0.0.0:0", "--no-auth", "--token-file", "token"},
		"does not exist": {"--listen", "0.0.0.0:0", "--token-file", "nowhere"},
	} {
		refused := exec.CommandContext(t.Context(), server.Command(t), append([]string{"serve", "--source", ids}, flags...)...)
		out, _ := refused.CombinedOutput() // its code tells
		if code := refused.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), name) {
			t.Errorf("%v: exit code %d, %s", flags, code, out)
		}
	}
	s := serve(t, ids, "--listen", "0.0.0.0:0", "--no-auth")
	if body, status := s.ask(t, id, ""); status != http.StatusOK || body != "1" {
		t.Errorf("%d %s", status, body)
	}
}
