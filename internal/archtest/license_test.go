// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const license = "SPDX-License-Identifier: Apache-2.0"

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestEveryGoFileAndScriptNamesItsLicense(t *testing.T) {
	root := moduleRoot(t)
	files, scripts := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && path != root && d.Name() != ".ci"
			if hidden || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		goFile := strings.HasSuffix(path, ".go")
		if !goFile && filepath.Base(filepath.Dir(path)) != ".ci" {
			return nil
		}
		raw, err := os.ReadFile(path) //nolint:gosec // the files are this checkout's own
		text := string(raw)
		switch {
		case err != nil:
			return err
		case goFile && generated.MatchString(text):
		case goFile:
			files++
			if !strings.HasPrefix(text, "// "+license+"\n\n") {
				t.Errorf("%s does not begin with // %s and an empty line; run .ci/spdx", path, license)
			}
		case strings.HasPrefix(text, "#!"):
			scripts++
			if _, rest, _ := strings.Cut(text, "\n"); !strings.HasPrefix(rest, "# "+license+"\n") {
				t.Errorf("%s has no # %s in its second line; run .ci/spdx", path, license)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 || scripts < 8 {
		t.Errorf("only %d Go files and %d scripts were looked at", files, scripts)
	}
}
