// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestATokenIsAskedForAndReadAgainWhenItsFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	const first, second = "0123456789abcdef-1", "0123456789abcdef-22"
	put := func(token string) {
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(first)
	token, err := OpenToken(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, func(c *Config) { c.Token = token }).Handler()
	expect := func(want int, path string, header ...string) {
		t.Helper()
		if w := ask(t, h, path, header...); w.Code != want {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	const id = "/api/segment/get/order"
	expect(401, id)
	expect(401, "/metrics")
	expect(401, id, "Authorization", "Bearer "+second)
	expect(401, id, "Authorization", "Basic "+first)
	expect(200, id, "Authorization", "bearer "+first)
	expect(200, "/livez")
	expect(200, "/readyz")
	if w := ask(t, h, "/readyz"); w.Body.String() != `{"status":"ok","checks":[]}` {
		t.Errorf("without the token it says %s", w.Body)
	}
	if w := ask(t, h, "/readyz", "Authorization", "Bearer "+first); !strings.Contains(w.Body.String(), `"generator order"`) {
		t.Errorf("with the token it says %s", w.Body)
	}
	put(second)
	expect(401, id, "Authorization", "Bearer "+first)
	expect(200, id, "Authorization", "Bearer "+second)
	put("short")
	expect(401, id, "Authorization", "Bearer short")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect(401, id, "Authorization", "Bearer "+second)
}

func TestOtherMachinesAreNotServedWithoutAToken(t *testing.T) {
	for address, refused := range map[string]bool{"0.0.0.0:0": true, ":0": true, "nonsense": true, "127.0.0.1:0": false, "localhost:0": false} {
		l, err := Listen(t.Context(), address, nil, false)
		if (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
}

func TestATokenFileThatOthersCanReadIsWarnedOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		if _, err := OpenToken(path, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(log.String(), "level=WARN msg=\"others can read the token file; chmod 600 it\""); warned != want {
			t.Errorf("%#o: %s", mode, log.String())
		}
	}
}
