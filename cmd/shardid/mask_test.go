// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
)

// Whatever a user forgets or confuses, a password that stands anywhere in the
// command line shows nowhere.
func TestPasswordsInAnyPlaceOfACommandLineShowNowhere(t *testing.T) {
	shop := newFile(t, smallShop)
	for _, password := range []string{"secretpw", "secretpw@x:y/z", `secretpw"q'`, "secretpw and more", "secretpw,x.y?z=1", "x=secretpw", "ünisecretpw", "1:secretpw"} {
		for _, dsn := range []string{
			"app:" + password + "@tcp(127.0.0.1:1)/shop",
			"mysql://app:" + password + "@127.0.0.1:1/shop",
			"postgres://app:" + password + "@127.0.0.1:1/shop",
			"-app:" + password + "@tcp(127.0.0.1:1)/shop",
		} {
			for _, line := range commandLines(dsn, shop) {
				showsNoPassword(t, line)
			}
		}
	}
}

// commandLines has a text in the place of each argument and flag.
func commandLines(dsn, file string) [][]string {
	lines := [][]string{
		{dsn}, {"--", dsn}, {"help", dsn}, {"completion", dsn}, {"completion", "bash", dsn}, {"demo", "--bogus", dsn},
		{"export", "citus", dsn}, {"export", "citus", "--config", dsn}, {"decode", "1", dsn}, {"decode", "--json", dsn, "1"}, {"decode", "--form", "base62", dsn},
		{"demo", "--db", dsn, "--table", "t"},
		{"demo", "--db", file, "--table", dsn}, {"demo", "--db", file, "--table", "orders", "--child", dsn},
		{"demo", "--db", file, "--table", "orders", "--child", "order_items." + dsn},
		{"decode", "--layout", "time:" + dsn, "1"}, {"decode", "--layout", "time:41,sequence:4," + dsn, "1"},
	}
	for command, flags := range map[string][]string{
		"demo":    {"dir", "db", "table", "child", "rows", "json"},
		"inspect": {"source", "json"},
		"decode":  {"layout", "epoch", "unit", "form", "json"},
		"schema":  {"dialect", "json"},
		"export":  {"config", "dir", "json", "unchecked"},
		"doctor":  {"config", "rows", "timeout", "json"},
		"audit":   {"config", "table", "column", "ids", "rows", "json"},
	} {
		lines = append(lines, []string{command, dsn}, []string{command, "--", dsn}, []string{command, "--" + dsn}, []string{command, "--bogus=" + dsn})
		for _, flag := range append(flags, "help", "version") {
			lines = append(lines, []string{command, "--" + flag + "=" + dsn}, []string{command, "--" + flag, dsn}, []string{command, dsn, "--" + flag})
		}
	}
	return lines
}

func showsNoPassword(t *testing.T, line []string) {
	t.Helper()
	t.Chdir(t.TempDir())
	o := execute(t, line...)
	if strings.Contains(o.stdout+o.stderr, "secretpw") {
		t.Errorf("%q: stdout %q, stderr %q", line, o.stdout, o.stderr)
	}
	if made, _ := filepath.Glob("*"); len(made) > 0 {
		t.Errorf("%q made %q", line, made)
	}
}

func TestMaskHidesWhatLooksLikeAPasswordAndNothingElse(t *testing.T) {
	m := layoutfile.NewMask([]string{"app:a b@tcp(h)/d", "--dsn=app:c d@h", "time:41", "a.b"})
	for text, want := range map[string]string{
		"cannot use app:s3cret@tcp(h)/d":                     "cannot use app:***@tcp(h)/d",
		`bad "app:s3:c@r/et@tcp(h)/d", sorry`:                `bad "app:***@tcp(h)/d", sorry`,
		"mysql://app:s3cret@h/d?x":                           "mysql://app:***@h/d?x",
		"mysql://app:***@h/d":                                "mysql://app:***@h/d",
		"no app:a b@tcp(h)/d here":                           "no app:***@tcp(h)/d here",
		"no app:c d@h":                                       "no app:***@h",
		"write it as user:password@tcp(host:3306)/shop":      "write it as user:password@tcp(host:3306)/shop",
		"or mysql://user:password@host:3306/shop, or a path": "or mysql://user:password@host:3306/shop, or a path",
		"shardid: --dir /a@b is a file; at 12:30, time:41":   "shardid: --dir /a@b is a file; at 12:30, time:41",
	} {
		if got := m.Hide(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestStderrHidesWhatACommandForgets(t *testing.T) {
	var out bytes.Buffer
	w := &layoutfile.MaskedWriter{Writer: &out, Mask: layoutfile.NewMask(nil)}
	if n, err := w.Write([]byte("to app:s3cret@h\n")); n != 16 || err != nil || out.String() != "to app:***@h\n" {
		t.Errorf("%d, %v, %q", n, err, &out)
	}
}
