// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// Text puts a statement whose names are in double quotes, and whose arguments are
// question marks, into the words of d. Neither sign can stand for itself.
func Text(d Dialect, statement string) string {
	var b strings.Builder
	args := 0
	for i, part := range strings.Split(statement, `"`) {
		if i%2 == 1 {
			b.WriteString(d.Quote(part))
			continue
		}
		for j, piece := range strings.Split(part, "?") {
			if j > 0 {
				args++
				b.WriteString(d.Placeholder(args))
			}
			b.WriteString(piece)
		}
	}
	return b.String()
}
