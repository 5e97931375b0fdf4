// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// template returns an empty data directory to copy. It is made on the machine's first
// use of this version of the program with these options. Test processes that
// need it at the same time wait for the process that makes it. It is "" for servers
// that make their data directory themselves.
func (k kind) template(ctx context.Context, program string) (string, error) {
	if k.install == nil {
		return "", nil
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	key, err := k.templateKey(ctx, program)
	if err != nil {
		return "", err
	}
	template := filepath.Join(cache, k.name+"-"+key)

	lock, err := waitForLock(ctx, filepath.Join(cache, k.name+".lock"))
	if err != nil {
		return "", fmt.Errorf("wait for the template data directory: %w", err)
	}
	defer lock.release()
	if _, err := os.Stat(template); err == nil {
		return template, nil
	}
	return template, k.makeTemplate(ctx, program, template)
}

// templateKey changes with the program and with the options that make the data.
func (k kind) templateKey(ctx context.Context, program string) (string, error) {
	version, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", program, err)
	}
	install, err := k.install(ctx, program, "")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(string(version) + strings.Join(install.Args, " ")))
	return hex.EncodeToString(sum[:8]), nil
}

// makeTemplate works in a directory with another name, so that an unfinished template
// is never used.
func (k kind) makeTemplate(ctx context.Context, program, template string) (err error) {
	workshop, err := newRunDir(k.name + "-template") // the server's user may have no access to the cache
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, workshop.remove()) }()
	data := filepath.Join(workshop.path, "data")
	if err := k.runInstall(ctx, program, workshop.path, data); err != nil {
		return err
	}
	unfinished := template + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove an interrupted template: %w", err)
	}
	if err := copyData(unfinished, data); err != nil {
		return fmt.Errorf("keep the template: %w", err)
	}
	return os.Rename(unfinished, template)
}

func (k kind) runInstall(ctx context.Context, program, workshop, data string) error {
	user, err := k.account()
	if err != nil {
		return err
	}
	cmd, err := k.install(ctx, program, data)
	if err != nil {
		return err
	}
	tmp := filepath.Join(workshop, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return fmt.Errorf("make a directory for the template: %w", err)
	}
	if err := user.takeOver(workshop); err != nil {
		return fmt.Errorf("make a directory for the template: %w", err)
	}
	cmd.Dir = workshop
	cmd.Env = append(plainEnviron(), "TMPDIR="+tmp) // see instance.tmpDir
	user.run(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make a data directory with %s: %w; it said:\n%s", cmd.Path, err, out)
	}
	return nil
}

// copyData copies a data directory. Other users get no access, because PostgreSQL requires that.
func copyData(to, from string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
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
