// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardid/shardid/integration/server"
	"github.com/shardid/shardid/internal/testkit/effort"
	"github.com/shardid/shardid/schema/versions"
	"github.com/shardid/shardid/sharding"
)

// ddlPage is docs/ddl.md, and the directory of its files.
type ddlPage struct {
	text, dir string
	env       []string
}

// newDDLPage writes the page's files, and builds the program into their directory.
func newDDLPage(t *testing.T, east, west string) *ddlPage {
	t.Helper()
	text, err := os.ReadFile("../docs/ddl.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &ddlPage{text: string(text), dir: t.TempDir()}
	p.env = []string{"PATH=" + p.dir + ":" + os.Getenv("PATH"), "SHOP_EAST=" + east, "SHOP_WEST=" + west}
	server.CommandIn(t, p.dir)
	files := p.blocks(t, "sql", 2)
	p.write(t, "shards.json", p.blocks(t, "json", 1)[0])
	p.write(t, "migrations/00001_shop.sql", files[0])
	p.write(t, "migrations/00002_note.sql", files[1])
	return p
}

func (p *ddlPage) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// blocks returns the page's code of a language, in its order.
func (p *ddlPage) blocks(t *testing.T, language string, want int) (blocks []string) {
	t.Helper()
	for _, rest := range strings.Split(p.text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "```\n")
		blocks = append(blocks, block)
	}
	if len(blocks) != want {
		t.Fatalf("%d blocks of %s, want %d", len(blocks), language, want)
	}
	return blocks
}

// command runs a line of the page in a shell.
func (p *ddlPage) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-ec", line)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// onEachPage runs test with two databases of each kind, by the names that the command
// line takes.
func onEachPage(t *testing.T, test func(t *testing.T, east, west string)) {
	t.Helper()
	t.Run("SQLite", func(t *testing.T) {
		dir := t.TempDir()
		test(t, filepath.Join(dir, "east.db"), filepath.Join(dir, "west.db"))
	})
	t.Run("MariaDB", func(t *testing.T) {
		m := server.ShareMariaDB(t)
		m.Open(t, "page_east")
		m.Open(t, "page_west")
		test(t, m.DSN("page_east"), m.DSN("page_west"))
	})
	t.Run("MySQL", func(t *testing.T) {
		m := server.ShareMySQL(t)
		m.Open(t, "page_east")
		m.Open(t, "page_west")
		test(t, m.DSN("page_east"), m.DSN("page_west"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		m := server.SharePostgres(t)
		m.Open(t, "page_east")
		m.Open(t, "page_west")
		test(t, m.DSN("page_east")+"?sslmode=disable", m.DSN("page_west")+"?sslmode=disable")
	})
}

func TestTheCommandsOfTheDDLPageDoWhatItSays(t *testing.T) {
	onEachPage(t, func(t *testing.T, east, west string) {
		p := newDDLPage(t, east, west)
		session := strings.Split("\n"+p.blocks(t, "console", 1)[0], "\n$ ")[1:]
		if len(session) != 8 {
			t.Fatalf("%d commands", len(session))
		}
		for _, part := range session {
			line, answer, _ := strings.Cut(part, "\n")
			cmd := p.command(t.Context(), line)
			var failure strings.Builder
			cmd.Stderr = &failure
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%s: %v: %s", line, err, failure.String())
			}
			shown := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(answer)), "…", ".*")
			if got := strings.TrimSpace(string(out)); !regexp.MustCompile("^" + shown + "$").MatchString(got) {
				t.Errorf("%s\nanswers\n%s\nand the page says\n%s", line, got, answer)
			}
		}
		for _, line := range regexp.MustCompile(`(?m)^    (shardid ddl resolve .*)$`).FindAllStringSubmatch(p.text, -1) {
			out, err := p.command(t.Context(), line[1]).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "nothing to resolve of 00002_note.sql on east/orders_0") {
				t.Errorf("%s: %s", line[1], out)
			}
		}
		if out, err := p.command(t.Context(), "shardid ddl adopt --config shards.json --to 1").CombinedOutput(); err != nil {
			t.Errorf("adopt: %s", out)
		}
	})
}

// ddlPageUp has the page's Go code.
func ddlPageUp(ctx context.Context, t *testing.T, router *sharding.Router) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	runner, err := versions.New(ctx, versions.Config{Router: router, Files: os.DirFS("migrations")})
	check(err)
	check(runner.Up(ctx, 0))
}

func TestTheGoCodeOfTheDDLPageIsThatWhichRuns(t *testing.T) {
	source, err := os.ReadFile("ddl_page_test.go")
	if err != nil {
		t.Fatal(err)
	}
	p := newDDLPage(t, "", "")
	if block := "\t" + strings.ReplaceAll(strings.TrimSuffix(p.blocks(t, "go", 1)[0], "\n"), "\n", "\n\t") + "\n"; !strings.Contains(string(source), block) {
		t.Errorf("the page says, but this does not run:\n%s", block)
	}
	db, err := sql.Open("sqlite", filepath.Join(p.dir, "whole.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	spread := func(pattern string) sharding.Map {
		m, err := sharding.Spread([]string{"whole"}, 4, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	router, err := sharding.New(sharding.DBs{"whole": db},
		sharding.Table{Name: "orders", Key: "user_id", Rule: sharding.Mod(4), Map: spread("orders_%d"), Group: "shop"},
		sharding.Table{Name: "items", Key: "user_id", Rule: sharding.Mod(4), Map: spread("items_%d"), Group: "shop"}, sharding.Broadcast("regions"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(p.dir)
	ddlPageUp(t.Context(), t, router)
	if _, err := db.ExecContext(t.Context(), "INSERT INTO orders_3 (id, user_id, note) VALUES (1, 3, 'x')"); err != nil {
		t.Error(err)
	}
}

// The program is killed after each statement that it reports as done, and restarted, until
// all versions are applied. The same is done while versions are undone.
func TestAProgramThatIsKilledAgainAndAgainAppliesEveryVersion(t *testing.T) {
	columns := effort.Cases(4, 10)
	onEachPage(t, func(t *testing.T, east, west string) {
		p := newDDLPage(t, east, west)
		for n := range columns {
			p.write(t, fmt.Sprintf("migrations/%05d_column.sql", n+3), fmt.Sprintf("-- +goose Up\nALTER TABLE orders ADD COLUMN c%d BIGINT;\nALTER TABLE items ADD COLUMN c%[1]d BIGINT;\n"+
				"-- +goose Down\nALTER TABLE items DROP COLUMN c%[1]d;\nALTER TABLE orders DROP COLUMN c%[1]d;\n", n))
		}
		kills := p.killed(t, "shardid ddl up --config shards.json")
		for _, verb := range []string{"status", "drift"} {
			if out, err := p.command(t.Context(), "shardid ddl "+verb+" --config shards.json").CombinedOutput(); err != nil {
				t.Errorf("after %d kills: %s", kills, out)
			}
		}
		kills += p.killed(t, "shardid ddl down --config shards.json")
		if out, err := p.command(t.Context(), "shardid ddl drift --config shards.json").CombinedOutput(); err != nil {
			t.Errorf("after %d kills: %s", kills, out)
		}
		if kills < columns {
			t.Errorf("it was killed %d times", kills)
		}
	})
}

// killed runs a command repeatedly until it ends by itself. It kills the command after its first
// statement. The next run must recognise the statement that was in progress.
func (p *ddlPage) killed(t *testing.T, line string) (kills int) {
	t.Helper()
	for {
		cmd := p.command(t.Context(), "exec "+line)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(stderr)
		last := ""
		if said.Scan() {
			last = said.Text()
			if !strings.HasPrefix(last, "shardid: ") {
				_ = cmd.Process.Kill()
				kills++
			}
		}
		for said.Scan() {
			last = said.Text()
		}
		err = cmd.Wait()
		switch {
		case err == nil:
			return kills
		case strings.HasPrefix(last, "shardid: "):
			t.Fatalf("after %d kills: %s", kills, last)
		}
	}
}
