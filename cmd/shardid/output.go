package main

import (
	"encoding/json"
	"io"
)

// writeJSON writes v for programs, and readable.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
