// SPDX-License-Identifier: Apache-2.0

package term

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Style emphasises text on one stream. The zero Style does not change text.
type Style struct{ on bool }

// StyleFor returns the style for a stream.
func StyleFor(w io.Writer) Style {
	return Style{IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// IsTerminal reports whether w, or the writer that it unwraps to, is a terminal.
func IsTerminal(w io.Writer) bool {
	if outer, ok := w.(interface{ Unwrap() io.Writer }); ok {
		return IsTerminal(outer.Unwrap())
	}
	f, ok := w.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// Bold returns s in bold type.
func (st Style) Bold(s string) string { return st.wrap("1", s) }

// Dim returns s in a fainter colour.
func (st Style) Dim(s string) string { return st.wrap("2", s) }

// Red returns s in red, for errors.
func (st Style) Red(s string) string { return st.wrap("31", s) }

// Yellow returns s in yellow, for warnings.
func (st Style) Yellow(s string) string { return st.wrap("33", s) }

// Green returns s in green, for success.
func (st Style) Green(s string) string { return st.wrap("32", s) }

func (st Style) wrap(code, s string) string {
	if !st.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
