// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestThePicturesOfTheReadmeAreThoseThatAreDrawn(t *testing.T) {
	root, drawn := moduleRoot(t), t.TempDir()
	script := filepath.Join(root, ".ci", "pictures")
	if out, err := exec.CommandContext(t.Context(), script, drawn).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"overview-light.svg", "overview-dark.svg", "overview.zh-CN-light.svg", "overview.zh-CN-dark.svg"} {
		if readPage(t, drawn, name) != readPage(t, filepath.Join(root, "docs", "images"), name) {
			t.Errorf("docs/images/%s is another one: run .ci/pictures docs/images", name)
		}
	}
}
