// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"context"
	"math"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
)

func TestNextIsInlined(t *testing.T) {
	for _, path := range []string{"segment", "cached"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-m", "github.com/shardid/shardid/keygen/"+path).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !strings.Contains(string(out), ": can inline (*Generator).Next\n") || !strings.Contains(string(out), ": inlining call to spans.Next\n") {
			t.Errorf("%s's Next is a call of its own", path)
		}
	}
}

func TestCallersOfTwoChunksWriteToNoLineInCommon(t *testing.T) {
	if size := reflect.TypeFor[chunk]().Size(); size%64 != 0 {
		t.Errorf("a chunk has %d bytes, which are no lines of 64", size)
	}
}

// bufferOf gives the keys of the spans, and no others.
func bufferOf(t *testing.T, spans []keygen.Span) *Buffer {
	t.Helper()
	given := 0
	b := New(Config{
		Name: "test", Spans: 2, Padding: 45, MaxWait: time.Second, CallTimeout: time.Second,
		Reserve: func(context.Context, Pace) (keygen.Span, error) {
			if given == len(spans) {
				return keygen.Span{}, keygen.ErrExhausted
			}
			given++
			return spans[given-1], nil
		},
	})
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// all takes all keys of the spans, one by one or by Fill.
func all(t *testing.T, b *Buffer, n int64, fill bool) []int64 {
	t.Helper()
	keys := make([]int64, n)
	if fill {
		if err := b.Fill(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	for i := range keys {
		var err error
		if keys[i], err = b.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func TestEverySpanGivesItsKeysHoweverTheyAreCounted(t *testing.T) {
	for _, spans := range [][]keygen.Span{
		{{First: 1, Count: 5, Step: 1}, {First: 6, Count: 1, Step: 1}, {First: 100, Count: 3, Step: 1}},
		{{First: 2, Count: 4, Step: 2}, {First: 10, Count: 3, Step: 2}}, // base 0, like a span from 1 on
		{{First: 3, Count: 4, Step: 7}, {First: 40, Count: 4, Step: 1}, {First: 44, Count: 4, Step: 3}},
		{{First: math.MaxInt64 - overrun - 3, Count: 4, Step: 1}, {First: math.MaxInt64 - overrun + 1, Count: 3, Step: 1}, {First: math.MaxInt64 - 1, Count: 2, Step: 1}},
	} {
		for _, fill := range []bool{false, true} {
			var want []int64
			for _, s := range spans {
				for i := range s.Count {
					want = append(want, s.First+i*s.Step)
				}
			}
			b := bufferOf(t, spans)
			if got := all(t, b, int64(len(want)), fill); !reflect.DeepEqual(got, want) {
				t.Errorf("%v gave %v, not %v", spans, got, want)
			}
			if issued, left := b.Stats().Issued, b.Stats().Remaining; issued != int64(len(want)) || left != 0 {
				t.Errorf("%v: %d issued, %d left", spans, issued, left)
			}
		}
	}
}
