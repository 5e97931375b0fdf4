// SPDX-License-Identifier: Apache-2.0

package route

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"regexp"
	"strings"
)

// generalLine is a line of a general log of MySQL (an instant with T), or of MariaDB (a
// date and a time, or nothing where both equal those of the line before): the id of the
// connection, a command, and the text.
var generalLine = regexp.MustCompile(`^(?:\d{4}-\d\d-\d\dT\S+|\d{6}\s+\d{1,2}:\d\d:\d\d|)\s*\d+ (Query|Execute|Prepare|Connect|Quit|Init DB|Close stmt|Reset stmt|Fetch|Statistics|Ping|Change user|Field List|Binlog Dump|Kill|Reset connection|Set option)(?:\t(.*))?$`)

// generalHead matches the lines with which a server begins a general log.
var generalHead = regexp.MustCompile(`, Version: .*started with:$|^Tcp port: .*Unix socket: |^Time\s+Id Command\s+Argument$`)

// What is wrong with the content of a log.
var (
	errLongLine = errors.New("a line is longer than 16 MB")
	errUTF16    = errors.New("it is UTF-16; write it as UTF-8")
)

// loggedStatements returns the statements of a general log, or of a file with one statement
// per line. In a general log, a line of another form continues the statement before it.
func loggedStatements(from io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in := bufio.NewReader(from)
		switch mark, _ := in.Peek(3); { // its error is found again
		case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
			yield("", errUTF16)
			return
		case string(mark) == "\xef\xbb\xbf":
			_, _ = in.Discard(len(mark)) // it was read
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLogged)
		var log queryLog
		for lines.Scan() {
			if text := log.line(lines.Text()); text != "" && !yield(text, nil) {
				return
			}
		}
		if text := log.end(); text != "" && !yield(text, nil) {
			return
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield("", errLongLine)
		} else if err != nil {
			yield("", err)
		}
	}
}

// queryLog is the state of reading a log.
type queryLog struct {
	general   bool   // it is a general log
	statement string // the statement that has not ended yet
}

// line adds a line and returns the statement that has ended with it, or "".
func (l *queryLog) line(text string) string {
	m := generalLine.FindStringSubmatch(text)
	switch {
	case generalHead.MatchString(text):
		return ""
	case m != nil:
		l.general = true
		ended := l.end()
		if m[1] == "Query" || m[1] == "Execute" {
			l.statement = m[2]
		}
		return ended
	case l.general:
		if l.statement != "" {
			l.statement += "\n" + text
		}
		return ""
	case strings.HasPrefix(strings.TrimSpace(text), "--"):
		return ""
	}
	return strings.TrimSpace(text)
}

// end returns the last statement.
func (l *queryLog) end() string {
	ended := strings.TrimSpace(l.statement)
	l.statement = ""
	return ended
}

// maxLogged is the default of max_allowed_packet in MySQL's client, which is more than that
// of MariaDB's server.
const maxLogged = 16 << 20
