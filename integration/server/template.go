// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	block := make([]byte, len(zeros))
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "." {
			return err
		}
		if entry.IsDir() {
			return os.Mkdir(filepath.Join(to, name), 0o700)
		}
		return copySparse(filepath.Join(to, name), path, block)
	})
}

// zeros are as many as a block of copySparse has.
var zeros [64 << 10]byte

// copySparse copies a file and leaves holes where it has only zeros: most of an empty database is zeros,
// and a file system in memory would keep them. It uses the block to copy.
func copySparse(to, from string, block []byte) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for at := int64(0); ; {
		n, ended := in.Read(block)
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		switch {
		case errors.Is(ended, io.EOF):
			return out.Truncate(at)
		case ended != nil:
			return ended
		}
	}
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
