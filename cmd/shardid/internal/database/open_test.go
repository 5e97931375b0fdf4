// SPDX-License-Identifier: Apache-2.0

package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
)

// Whatever is wrong with it, a name of a server never shows its password. The
// server that answers here is none.
func TestNoPasswordShowsInAnyError(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-served
	})
	address := listener.Addr().String()
	for _, password := range []string{"s3cret", "s3cret/x", "s3cret?x", "s3cret@x", "s3cret(x)", "x:s3cret", "s3cret%", "//s3cret", "s3cret#x", "127.0.0.1/s3cret"} {
		for _, dsn := range []string{
			"app:" + password + "@tcp(" + address + ")/shop",
			"app:" + password + "@tcp(" + address + ")/shop?nonsense=%zz",
			"app:" + password + "@tcp(" + address + ")/shop?tls=nonsense",
			"app:" + password + "@tcp(" + address + ")",
			"app:" + password + "@" + address + "/shop",
			"mysql://app:" + password + "@" + address + "/shop",
			"mysql://app:" + password + "@" + address + "/shop?tls=nonsense&x",
			"mariadb://app:" + password + "@" + address,
			"postgres://app:" + password + "@" + address + "/shop?sslmode=disable",
			"postgresql://app:" + password + "@" + address + "/shop?sslmode=nonsense&x",
			"POSTGRES://app:" + password + "@" + address,
			"postgres://" + address + "/shop?user=app&password=" + password,
		} {
			db, err := Open(t.Context(), dsn)
			if err == nil {
				t.Errorf("%s: opened", dsn)
				_ = db.Close()
				continue
			}
			if !input.Caused(err) && !Away(err) {
				t.Errorf("%s: %v is not the user's mistake", dsn, err)
			}
			for _, form := range []string{"%v", "%s", "%q"} {
				if text := fmt.Sprintf(form, err); strings.Contains(text, "s3cret") {
					t.Errorf("%s shows: %s", dsn, text)
				}
			}
		}
	}
}

func TestScrubbedHidesThePasswordInTheDriversText(t *testing.T) {
	err := scrubbed{errors.New("Access denied for s3cret"), "s3cret"}
	if err.Error() != "Access denied for ***" {
		t.Error(err)
	}
	if err := (scrubbed{context.Canceled, ""}); err.Error() != "context canceled" || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFilesAreOpenedForReadingOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dsn := range []string{path, "file:" + path + "?mode=rwc", "sqlite://" + path} {
		db, err := Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (x)"); err == nil || !strings.Contains(err.Error(), "readonly") {
			t.Errorf("%s: %v", dsn, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
