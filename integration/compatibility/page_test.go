// SPDX-License-Identifier: Apache-2.0

package compatibility

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // registers "sqlite"

	"github.com/shardid/shardid/integration/server"
)

const page = "../../docs/compatibility.md"

// supported is a server, the oldest release that the code is written for, and the calls by which
// tests start it.
type supported struct {
	name, oldest string
	starts       *regexp.Regexp
	image        string // in the matrix of CI
	version      func(*testing.T) []string
}

func servers() []supported {
	return []supported{
		{"MariaDB", "10.6", regexp.MustCompile(`server\.(Share|Run|Start)MariaDB`), "mariadb", func(t *testing.T) []string {
			t.Helper()
			return []string{selected(t, server.ShareMariaDB(t).Open(t, "versions"), "SELECT VERSION()")}
		}},
		{"MySQL", "5.7; migration 8.0", regexp.MustCompile(`server\.(Share|Run|Start)MySQL`), "mysql", func(t *testing.T) []string {
			t.Helper()
			return []string{selected(t, server.ShareMySQL(t).Open(t, "versions"), "SELECT VERSION()")}
		}},
		{"PostgreSQL", "12; migration 15", regexp.MustCompile(`server\.(Share|Run|Start)Postgres`), "postgres", func(t *testing.T) []string {
			t.Helper()
			return []string{selected(t, server.SharePostgres(t).Open(t, "versions"), "SHOW server_version"), newestPostgres(t)}
		}},
		{"SQLite", "3.37", regexp.MustCompile(`"sqlite3?"`), "", func(t *testing.T) []string {
			t.Helper()
			db, err := sql.Open("sqlite", ":memory:")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			return []string{selected(t, db, "SELECT sqlite_version()")}
		}},
		{"Redis", "", regexp.MustCompile(`server\.(Run|Start)Redis`), "", func(t *testing.T) []string {
			t.Helper()
			info, err := server.RunRedis(t).Open(t).Info(t.Context(), "server").Result()
			if err != nil {
				t.Fatal(err)
			}
			return []string{found(t, `redis_version:(\S+)`, info)}
		}},
		{"ZooKeeper", "", regexp.MustCompile(`server\.(Run|Start)ZooKeeper`), "", func(t *testing.T) []string {
			t.Helper()
			return []string{found(t, `(?i)zookeeper version: (\d[\d.]+)`, asked(t, server.RunZooKeeper(t).Addr(), "srvr"))}
		}},
	}
}

func TestThePageOnCompatibilitySaysWhatServersAnswer(t *testing.T) {
	want := written(t)
	if os.Getenv("SHARDID_WRITE_PAGE") != "" {
		if err := os.WriteFile(page, want, 0o644); err != nil { //nolint:gosec // a page to read
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/compatibility.md is not what servers and go.mod files say (%v); run this test with SHARDID_WRITE_PAGE=1. It is to be:\n%s", err, want)
	}
}

func written(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`# Compatibility

This page lists the versions with which shardid is tested. A test writes it from the versions that servers report in a test run,
from go.mod and from CI's matrix, and fails if the page differs.

## Servers

"Tested" are the releases that ` + "`make test`" + ` starts. CI is configured to run the tests of the folder
` + "`integration`" + ` with those of its matrix too. Other releases are not tested: the column "oldest" names the release
to whose SQL the code is restricted.

| server | oldest | tested | in the matrix of CI | folders of ` + "`integration`" + ` whose tests use it |
|---|---|---|---|---|
`)
	ci := read(t, "../../.github/workflows/ci.yml")
	for _, s := range servers() {
		var tested []string
		for _, v := range s.version(t) {
			tested = append(tested, release(v))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s.name, s.oldest, strings.Join(tested, ", "), images(ci, s.image), strings.Join(folders(t, s.starts), ", "))
	}
	b.WriteString(`
SQLite is also the database of the demo and of most tests of the root module. Redis and ZooKeeper serve only for ids
and worker ids.

## Go and libraries

| | required | tested with |
|---|---|---|
`)
	goMatrix := found(t, `go: \[([^\]]+)\]`, ci)
	root, integration := read(t, "../../go.mod"), read(t, "../go.mod")
	fmt.Fprintf(&b, "| Go | %s | %s; the matrix of CI has %s |\n", found(t, `(?m)^go (\d+\.\d+)`, root),
		found(t, `^go(\d+\.\d+)`, runtime.Version()), strings.ReplaceAll(goMatrix, ".x", ""))
	for _, of := range []struct{ name, module string }{
		{"GORM", "gorm.io/gorm"}, {"sqlx", "github.com/jmoiron/sqlx"}, {"go-sql-driver/mysql", "github.com/go-sql-driver/mysql"},
		{"pgx", "github.com/jackc/pgx/v5"}, {"modernc.org/sqlite", "modernc.org/sqlite"}, {"mattn/go-sqlite3", "github.com/mattn/go-sqlite3"},
		{"go-redis", "github.com/redis/go-redis/v9"}, {"go-zookeeper/zk", "github.com/go-zookeeper/zk"},
	} {
		asked := required(root, of.module)
		fmt.Fprintf(&b, "| %s | %s | %s |\n", of.name, asked, joined(asked, required(integration, of.module)))
	}
	b.WriteString("\nThe root module does not require clients of Redis and ZooKeeper; it defines interfaces that they implement.\nThe tests of the root module run with the required versions, those of `integration` with the newer\nones.\n")
	return b.Bytes()
}

func selected(t *testing.T, db *sql.DB, query string) (version string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&version); err != nil {
		t.Fatal(err)
	}
	return version
}

// newestPostgres is the one that the tests on PostgreSQL run on as well.
func newestPostgres(t *testing.T) string {
	t.Helper()
	bin, err := exec.CommandContext(t.Context(), "../../.ci/install-newest-postgres").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(string(bin)), "postgres"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return found(t, `(\d[\d.]+)`, string(text))
}

// asked sends a word of four letters to ZooKeeper.
func asked(t *testing.T, addr, word string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(word)); err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	return answer.String()
}

// release is the part of a version that names its releases: patches differ between machines.
func release(version string) string {
	numbers := regexp.MustCompile(`^\d+(\.\d+)?`).FindString(version)
	if major, _, _ := strings.Cut(numbers, "."); len(major) == 2 && major >= "12" { // as PostgreSQL counts
		return major
	}
	return numbers
}

func images(ci, image string) string {
	if image == "" {
		return ""
	}
	var all []string
	for _, m := range regexp.MustCompile(`"`+image+`:([\d.]+)"`).FindAllStringSubmatch(ci, -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, ", ")
}

// folders are those of this module whose tests have the pattern.
func folders(t *testing.T, pattern *regexp.Regexp) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../")))
		if folder != "compatibility" && folder != "server" && pattern.MatchString(read(t, path)) {
			all = append(all, "`"+strings.Replace(folder, ".", "integration", 1)+"`")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// joined leaves out what is empty, and what stands before it.
func joined(versions ...string) string {
	return strings.Join(slices.Compact(slices.DeleteFunc(versions, func(v string) bool { return v == "" })), ", ")
}

func required(mod, module string) string {
	m := regexp.MustCompile(`(?m)^(?:require )?\s*` + regexp.QuoteMeta(module) + ` v(\S+)`).FindStringSubmatch(mod)
	if m == nil {
		return ""
	}
	return m[1]
}

func found(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in\n%s", pattern, text)
	}
	return m[1]
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
