// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
)

// Token is a bearer token in a file, which is read again whenever the file changes.
type Token struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	read os.FileInfo // state of the file when sum was read
	sum  [sha256.Size]byte
	err  error
}

// OpenToken reads a token from the first line of a file.
func OpenToken(path string, log *slog.Logger) (*Token, error) {
	t := &Token{path: path, log: log}
	return t, t.Reload()
}

// Reload reads the file. Requests are refused until it succeeds.
func (t *Token) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reload()
}

func (t *Token) reload() error {
	t.err = t.take()
	return t.err
}

func (t *Token) take() error {
	info, err := os.Stat(t.path)
	if err != nil {
		return input.Unread("--token-file", t.path, err, "name a file with a token of at least 16 characters")
	}
	text, err := os.ReadFile(t.path)
	if err != nil {
		return input.Unread("--token-file", t.path, err, "name a file with a token of at least 16 characters")
	}
	token := strings.TrimSpace(string(text))
	if len(token) < 16 || strings.ContainsAny(token, " \t\r\n") {
		return input.Errorf("--token-file %s must hold one token of at least 16 characters, such as openssl rand -hex 32 makes", t.path)
	}
	if info.Mode().Perm()&0o044 != 0 {
		t.log.Warn("others can read the token file; chmod 600 it", "file", t.path, "mode", fmt.Sprintf("%#o", info.Mode().Perm()))
	}
	t.read, t.sum = info, sha256.Sum256([]byte(token))
	return nil
}

// changed reports whether the file has changed since it was read.
func (t *Token) changed() bool {
	now, err := os.Stat(t.path)
	return err != nil || t.read == nil || !os.SameFile(now, t.read) || !now.ModTime().Equal(t.read.ModTime()) || now.Size() != t.read.Size()
}

// allows compares the token in constant time.
func (t *Token) allows(r *http.Request) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(given)))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed() {
		before := t.err
		if err := t.reload(); err != nil && before == nil {
			t.log.Error("requests are refused", "error", err)
		}
	}
	return t.err == nil && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
}

// guard passes on only requests with the token.
func (t *Token) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.allows(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="shardid"`)
			fail(w, r, http.StatusUnauthorized, "", "give the token of --token-file in a header Authorization: Bearer")
			return
		}
		next.ServeHTTP(w, r)
	})
}
