// SPDX-License-Identifier: Apache-2.0

package layoutfile

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// Mask hides passwords in what is said about a command line. Messages redact
// what they quote by themselves; the mask is for those that forget, or that are
// written by others.
type Mask struct{ known *strings.Replacer }

// NewMask knows the passwords in texts, whatever characters they have.
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

// unquoted is how %q shows a text, without the quotes.
func unquoted(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

var (
	credentials = regexp.MustCompile("([^\\s:/@\"'`(]+:(?://[^\\s:/@]*:)?)[^\\s]*@")
	// The passwords of our own examples are none.
	examples = [2]string{"user:password@", "user\x00"}
)

// Hide returns text without what looks like a password.
func (m Mask) Hide(text string) string {
	text = m.known.Replace(text)
	text = strings.ReplaceAll(text, examples[0], examples[1])
	text = credentials.ReplaceAllString(text, "${1}***@")
	return strings.ReplaceAll(text, examples[1], examples[0])
}

// Explain hides passwords in an error. One that the input has caused stays what it is.
func (m Mask) Explain(err error) error {
	if err == nil || input.Caused(err) {
		return err
	}
	return errors.New(m.Hide(err.Error()))
}

// MaskedWriter hides passwords in each text that is written. It is safe for
// concurrent use: progress is shown beside what a command says.
type MaskedWriter struct {
	io.Writer

	Mask Mask
	turn sync.Mutex
}

// Unwrap lets package term see whether the stream is a terminal.
func (w *MaskedWriter) Unwrap() io.Writer { return w.Writer }

// Write is given whole lines.
func (w *MaskedWriter) Write(text []byte) (int, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	if _, err := io.WriteString(w.Writer, w.Mask.Hide(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
