// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
)

// manual is docs/serve.md.
type manual struct{ text string }

func readManual(t *testing.T) manual {
	t.Helper()
	text, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	return manual{string(text)}
}

// blocks returns the code of a language, in its order.
func (m manual) blocks(t *testing.T, language string, want int) (blocks []string) {
	t.Helper()
	for _, rest := range strings.Split(m.text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "\n```\n")
		blocks = append(blocks, block)
	}
	if len(blocks) != want {
		t.Fatalf("%d blocks of %s, want %d", len(blocks), language, want)
	}
	return blocks
}

// shell runs the commands of the manual with what stands there for an address or a path
// replaced.
type shell struct {
	path string // of its programs
	here *strings.Replacer
	env  []string
}

func (s shell) run(t *testing.T, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", s.here.Replace(command))
	cmd.Env = append([]string{"PATH=" + s.path + ":" + os.Getenv("PATH")}, s.env...)
	var failure strings.Builder
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v: %s", command, err, failure.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// session runs the commands of a block, each of which begins with $, and compares their
// output with the text below them.
func (s shell) session(t *testing.T, block string) {
	t.Helper()
	commands := strings.Split("\n"+block, "\n$ ")[1:]
	for _, c := range commands {
		command, answer, _ := strings.Cut(c, "\n")
		if got := s.run(t, command); !shows(answer, got) {
			t.Errorf("$ %s\nanswers\n%s\nand the manual says\n%s", command, got, answer)
		}
	}
	if len(commands) == 0 {
		t.Error("no commands")
	}
}

var (
	dots   = regexp.MustCompile("…")
	digits = regexp.MustCompile(`\d{16,}`)
)

// shows reports whether a text matches the manual's, in which … is any text, and a number of
// 16 digits or more is any snowflake id.
func shows(shown, text string) bool {
	pattern := digits.ReplaceAllString(dots.ReplaceAllString(regexp.QuoteMeta(shown), ".*"), `\d{16,}`)
	return regexp.MustCompile("^" + pattern + "$").MatchString(text)
}

func TestTheServerAnswersAsTheManualShows(t *testing.T) {
	m, dir := readManual(t), t.TempDir()
	setup, withToken := m.blocks(t, "sh", 3)[0], m.blocks(t, "sh", 3)[1] // the third is Docker's
	plain, refused := m.blocks(t, "console", 2)[0], m.blocks(t, "console", 2)[1]
	dsn := shop(t, dir)

	commands, serving, found := strings.Cut(setup, "\nSHARDID_SOURCE='user:password@tcp(db:3306)/shop' shardid serve")
	if !found || serving != "" {
		t.Fatalf("the first block ends otherwise: %s", setup)
	}
	shell{path: dir, here: strings.NewReplacer()}.run(t, commands)
	open := serve(t, dsn)
	shell{path: dir, here: strings.NewReplacer("http://127.0.0.1:8080", open.url)}.session(t, plain)

	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run, reload := unit(t, m, token)
	closed := serve(t, dsn, run...)
	curl := shell{path: dir, here: strings.NewReplacer("http://ids:8080", closed.url, "/etc/shardid/token", token), env: []string{"MAINPID=" + strconv.Itoa(closed.process.Pid)}}
	if id := curl.run(t, withToken); id != "1001" {
		t.Errorf("the first id of the second server is %s", id)
	}
	curl.session(t, refused)
	curl.run(t, reload)
	if body, status := closed.ask(t, "/livez", ""); status != http.StatusOK {
		t.Errorf("after %s: %d %s", reload, status, body)
	}
}

// shop makes a database, and programs mysql, which reaches it as shop, and shardid.
func shop(t *testing.T, dir string) (dsn string) {
	t.Helper()
	maria := server.ShareMariaDB(t)
	maria.Open(t, "shop")
	dsn = maria.DSN("shop")
	at, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(at.Addr, ":")
	client := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = shop ] || exit 64\nshift\nexec mariadb --no-defaults --user=%s --host=%s --port=%s %s \"$@\"\n", at.User, host, port, at.DBName)
	if err := os.WriteFile(filepath.Join(dir, "mysql"), []byte(client), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	server.CommandIn(t, dir)
	return dsn
}

// unit returns the flags with which the manual's systemd unit starts the server, on any port,
// and the command that has it read its token again.
func unit(t *testing.T, m manual, token string) (flags []string, reload string) {
	t.Helper()
	for line := range strings.Lines(m.blocks(t, "ini", 1)[0]) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ExecStart":
			value, found := strings.CutPrefix(value, "/usr/local/bin/shardid serve ")
			if !found {
				t.Fatal(line)
			}
			flags = strings.Fields(strings.NewReplacer("/etc/shardid/token", token, ":8080", ":0").Replace(value))
		case "ExecReload":
			reload = value
		}
	}
	if len(flags) == 0 || reload == "" {
		t.Fatal("the unit starts or reloads nothing")
	}
	return flags, reload
}
