package main

import (
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/shardid/shardid/internal/dialect"
)

// mask hides passwords in what is said about a command line. Messages redact
// what they quote by themselves; the mask is for those that forget, or that are
// written by others.
type mask struct{ known *strings.Replacer }

// newMask knows the passwords in texts, whatever characters they have.
func newMask(texts []string) mask {
	var pairs []string
	for _, text := range texts {
		if name, value, isFlag := strings.Cut(text, "="); isFlag && strings.HasPrefix(name, "-") {
			text = value
		}
		if shown := dialect.RedactDSN(text); shown != text && strings.ContainsAny(text, "@=") {
			pairs = append(pairs, text, shown, unquoted(text), unquoted(shown))
		}
	}
	return mask{strings.NewReplacer(pairs...)}
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

// hide returns text without what looks like a password.
func (m mask) hide(text string) string {
	text = m.known.Replace(text)
	text = strings.ReplaceAll(text, examples[0], examples[1])
	text = credentials.ReplaceAllString(text, "${1}***@")
	return strings.ReplaceAll(text, examples[1], examples[0])
}

// maskedWriter hides passwords in each text that is written. It is safe for
// concurrent use: progress is shown beside what a command says.
type maskedWriter struct {
	io.Writer

	mask mask
	turn sync.Mutex
}

// Unwrap lets package term see whether the stream is a terminal.
func (w *maskedWriter) Unwrap() io.Writer { return w.Writer }

// Write is given whole lines.
func (w *maskedWriter) Write(text []byte) (int, error) {
	w.turn.Lock()
	defer w.turn.Unlock()
	if _, err := io.WriteString(w.Writer, w.mask.hide(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
