// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/go-sql-driver/mysql"

	"github.com/shardid/shardid/integration/server"
)

const password = "s3cret/with:signs"

// readCompose reads the compose.yaml of a directory as Docker Compose does, by its schema.
func readCompose(t *testing.T, in string) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../..", in))
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml")}},
		Environment: types.Mapping{"SHARDID_PASSWORD": password},
	})
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// The image of MariaDB makes its database and user by these variables, and then runs the
// scripts in the order of their names. The server is the harness' one; no image is run.
func TestTheServicesOfTheComposeFileGiveIDs(t *testing.T) {
	project := readCompose(t, "deploy")
	db, ids := project.Services["db"], project.Services["ids"]
	maria := server.RunMariaDB(t)
	name, user := *db.Environment["MARIADB_DATABASE"], *db.Environment["MARIADB_USER"]
	root := maria.Open(t, name)
	for _, statement := range []string{
		"CREATE USER '" + user + "'@'%' IDENTIFIED BY '" + *db.Environment["MARIADB_PASSWORD"] + "'",
		"GRANT ALL ON `" + name + "`.* TO '" + user + "'@'%'",
	} {
		if _, err := root.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	at, err := mysql.ParseDSN(maria.DSN(name))
	if err != nil {
		t.Fatal(err)
	}
	runScripts(t, db, at)

	source := strings.Replace(*ids.Environment["SHARDID_SOURCE"], "db:3306", at.Addr, 1)
	if ids.Command[0] != "serve" || !slices.Contains(ids.Command, "0.0.0.0:8080") || ids.Ports[0].Target != 8080 || ids.Ports[0].HostIP != "127.0.0.1" {
		t.Errorf("the port of %v is not that of %+v", ids.Command, ids.Ports)
	}
	flags := strings.Fields(strings.Replace(strings.Join(ids.Command[1:], " "), ":8080", ":0", 1))
	s := serve(t, source, flags...)
	for path, want := range map[string]string{id: `^1$`, "/api/snowflake/get/x": `^\d{16,}$`, "/readyz": `"ok"`} {
		if body, status := s.ask(t, path, ""); status != http.StatusOK || !regexp.MustCompile(want).MatchString(body) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if grace := time.Duration(*ids.StopGracePeriod); grace <= 10*time.Second {
		t.Errorf("it is killed after %v, which is no longer than --grace", grace)
	}
}

// runScripts runs those that the service has mounted for the first start.
// The README of the examples names these ports.
func TestTheExamplesHaveTwoDatabases(t *testing.T) {
	project := readCompose(t, "examples")
	ports := map[string]string{"east": "3306", "west": "3307"}
	if len(project.Services) != len(ports) {
		t.Errorf("%d services", len(project.Services))
	}
	for name, port := range ports {
		s := project.Services[name]
		if len(s.Ports) != 1 || s.Ports[0].Published != port || s.Ports[0].HostIP != "127.0.0.1" || *s.Environment["MARIADB_DATABASE"] != "shop" {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func runScripts(t *testing.T, db types.ServiceConfig, at *mysql.Config) {
	t.Helper()
	var scripts []string
	for _, v := range db.Volumes {
		if strings.HasPrefix(v.Target, "/docker-entrypoint-initdb.d/") {
			scripts = append(scripts, v.Target+"="+v.Source)
		}
	}
	slices.Sort(scripts)
	if len(scripts) != 2 {
		t.Fatalf("the scripts are %v", scripts)
	}
	host, port, _ := strings.Cut(at.Addr, ":")
	for _, script := range scripts {
		_, path, _ := strings.Cut(script, "=")
		text, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		client := exec.CommandContext(t.Context(), "mariadb", "--no-defaults", "--user="+at.User, "--host="+host, "--port="+port, at.DBName)
		client.Stdin = text
		if out, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", path, err, out)
		}
		_ = text.Close()
	}
}

// What an image is made of is checked as far as it can be without Docker.
func TestTheDockerfileBuildsTheCommandWithTheModulesGo(t *testing.T) {
	build := readCompose(t, "deploy").Services["ids"].Build
	text, err := os.ReadFile(filepath.Join(build.Context, build.Dockerfile))
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern, in string) string {
		t.Helper()
		found := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringSubmatch(in)
		if found == nil {
			t.Fatalf("no line %s", pattern)
		}
		return found[1]
	}
	module, err := os.ReadFile(filepath.Join(build.Context, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	image, needed := find(`FROM golang:([\d.]+) AS build`, string(text)), find(`go (\d+\.\d+)(?:\.\d+)?`, string(module))
	if image != needed {
		t.Errorf("it builds with Go %s, and go.mod needs %s", image, needed)
	}
	made := filepath.Join(t.TempDir(), "shardid")
	command := exec.CommandContext(t.Context(), "sh", "-ec", strings.Replace(find(`RUN (.*)`, string(text)), "/shardid", strconv.Quote(made), 1))
	command.Dir = build.Context
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), made, "serve", "--help").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheComposeFileOfTheExamplesHasTwoServersWithTheDatabasesThatTheirPageNames(t *testing.T) {
	project := readCompose(t, "examples")
	for name, port := range map[string]string{"east": "3306", "west": "3307"} {
		s := project.Services[name]
		if len(s.Ports) != 1 || s.Ports[0].Published != port || len(s.Configs) != 1 || *s.Environment["MARIADB_DATABASE"] != "shop" {
			t.Errorf("%s: %+v", name, s)
			continue
		}
		if script := project.Configs[s.Configs[0].Source].Content; script != "CREATE DATABASE outgrown;" {
			t.Errorf("%s makes %q", name, script)
		}
	}
}
