package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// innodbLogSize must be the same when the template is made and when a server
// runs on it, or the server would first build a new log.
const innodbLogSize = "--innodb-log-file-size=4M"

// mariadbTemplate returns an empty data directory to copy, made on the
// machine's first use of this version of mariadbd with these options. Test
// processes that need it at the same time wait for the one that makes it.
func mariadbTemplate(ctx context.Context, mariadbd string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, mariadbd, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", mariadbd, err)
	}
	options := installOptions()
	key := sha256.Sum256([]byte(string(version) + strings.Join(options, " ")))
	template := filepath.Join(cache, fmt.Sprintf("mariadb-%x", key[:8]))

	lock, err := waitForLock(ctx, filepath.Join(cache, "mariadb.lock"))
	if err != nil {
		return "", fmt.Errorf("wait for the template data directory: %w", err)
	}
	defer lock.release()
	if _, err := os.Stat(template); err == nil {
		return template, nil
	}
	return template, makeTemplate(ctx, template, options)
}

func installOptions() []string {
	options := []string{
		"--no-defaults",
		"--skip-test-db",
		"--auth-root-authentication-method=normal", // user root, no password
		innodbLogSize,
	}
	return append(options, runAsRoot()...)
}

// makeTemplate works in a directory of another name, so that one that was
// interrupted is never taken for a finished one.
func makeTemplate(ctx context.Context, template string, options []string) error {
	install, err := findProgram("mariadb-install-db")
	if err != nil {
		return err
	}
	workshop := template + ".unfinished"
	data, tmp := filepath.Join(workshop, "data"), filepath.Join(workshop, "tmp")
	if err := os.RemoveAll(workshop); err != nil {
		return fmt.Errorf("remove an interrupted template: %w", err)
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return fmt.Errorf("make a directory for the template: %w", err)
	}
	cmd := exec.CommandContext(ctx, install, append(options, "--datadir="+data)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp) // see MariaDB.tmpDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a data directory with %s: %w; it said:\n%s", install, err, out)
	}
	if err := os.Rename(data, template); err != nil {
		return fmt.Errorf("name the template: %w", err)
	}
	return os.RemoveAll(workshop)
}

func cacheDir() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		user = os.TempDir() // a system user without a home
	}
	dir := filepath.Join(user, "shardid-test-servers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the cache of template data directories: %w", err)
	}
	return dir, nil
}
