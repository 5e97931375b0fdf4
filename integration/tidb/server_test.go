// SPDX-License-Identifier: Apache-2.0

package tidb_test

import (
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/internal/testwait"
)

// started is a server with its rows in memory, which ends with the test.
type started struct{ address string }

func start(t *testing.T) started {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "shardid-test-servers", "tidb", "tidb-server")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; make tidb builds it", err)
	}
	dir, port := t.TempDir(), freePort(t)
	errorLog := filepath.Join(dir, "tidb.log")
	cmd := exec.Command(program, "-store", "unistore", "-path", "", "-host", "127.0.0.1", "-P", strconv.Itoa(port),
		"-report-status=false", "-socket", "", "-log-file", errorLog, "-temp-dir", dir)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		if t.Failed() {
			text, _ := os.ReadFile(errorLog)
			t.Logf("the end of its log: %s", text[max(0, len(text)-3000):])
		}
	})
	s := started{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	db := s.open(t, "")
	testwait.Until(t, "TiDB answers", func() bool {
		select {
		case <-ended:
			t.Fatal("TiDB has ended")
		default:
		}
		return db.PingContext(t.Context()) == nil
	})
	return s
}

// freePort is one that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().(*net.TCPAddr).Port
}

func (s started) open(t *testing.T, database string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", "root@tcp("+s.address+")/"+database+"?parseTime=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// atOnce calls f from several goroutines, each several times, and fails if a number
// is returned twice.
func atOnce(t *testing.T, goroutines, calls int, f func() ([]int64, error)) (n int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	seen := map[int64]bool{}
	for range goroutines {
		all.Go(func() {
			for range calls {
				numbers, err := f()
				mu.Lock()
				for _, number := range numbers {
					if seen[number] {
						t.Errorf("%d was returned twice", number)
					}
					seen[number] = true
				}
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return len(seen)
}
