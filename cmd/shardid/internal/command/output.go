// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"io"
)

// WriteJSON writes v as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
