// SPDX-License-Identifier: Apache-2.0

package nilness_test

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/shardid/shardid/internal/nilness"
)

func TestANilPointerInAnInterfaceIsNil(t *testing.T) {
	var file io.Reader = (*os.File)(nil)
	for name, v := range map[string]any{
		"nothing": nil, "pointer": file, "function": (func())(nil), "map": map[string]int(nil), "slice": []int(nil), "channel": (chan int)(nil),
	} {
		if !nilness.Is(v) {
			t.Errorf("%s: not nil", name)
		}
	}
	for name, v := range map[string]any{
		"zero": 0, "struct": struct{}{}, "text": "", "pointer": new(int), "error": errors.New("x"), "slice": []int{}, "array": [2]byte{},
	} {
		if nilness.Is(v) {
			t.Errorf("%s: nil", name)
		}
	}
}
