// SPDX-License-Identifier: Apache-2.0

package layoutfile

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// Mask hides passwords in messages about a command line. Messages of this program redact
// what they quote; the mask is for those that do not, and for those of other packages.
type Mask struct{ known *strings.Replacer }

// NewMask returns a mask for the passwords in texts, whatever characters they have.
func NewMask(texts []string) Mask {
	var pairs []string
	for _, text := range texts {
		if name, value, isFlag := strings.Cut(text, "="); isFlag && strings.HasPrefix(name, "-") {
			text = value
		}
		if shown := dialect.RedactDSN(text); shown != text && strings.ContainsAny(text, "@=") {
			pairs = append(pairs, text, shown, unquoted(text), unquoted(shown))
		}
	}
	return Mask{strings.NewReplacer(pairs...)}
}

// unquoted is a text as %q shows it, without the quotes.
func unquoted(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

var (
	credentials = regexp.MustCompile("([^\\s:/@\"'`(]+:(?://[^\\s:/@]*:)?)[^\\s]*@")
	// The passwords of our own examples are none.
	examples = [2]string{"user:password@", "user\x00"}
)

// Hide returns text without anything that looks like a password.
func (m Mask) Hide(text string) string {
	text = m.known.Replace(text)
	text = strings.ReplaceAll(text, examples[0], examples[1])
	text = credentials.ReplaceAllString(text, "${1}***@")
	return strings.ReplaceAll(text, examples[1], examples[0])
}

// Explain hides passwords in an error, and keeps its exit code. An input.Error is returned
// unchanged.
func (m Mask) Explain(err error) error {
	if err == nil || input.Caused(err) {
		return err
	}
	hidden := errors.New(m.Hide(err.Error()))
	if code, given := command.CodeOf(err); given {
		return command.WithCode(hidden, code)
	}
	return hidden
}

// MaskedWriter hides passwords in each text that is written. It is safe for concurrent use:
// progress is shown beside other output.
type MaskedWriter struct {
	io.Writer

	Mask Mask
	turn sync.Mutex
}

// Unwrap allows package term to check whether the stream is a terminal.
func (w *MaskedWriter) Unwrap() io.Writer { return w.Writer }

// Write must be called with whole lines.
func (w *MaskedWriter) Write(text []byte) (int, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	if _, err := io.WriteString(w.Writer, w.Mask.Hide(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
