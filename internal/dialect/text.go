// SPDX-License-Identifier: Apache-2.0

package dialect

import "strings"

// Text translates a statement to d: it replaces double quotes by d's quotes and question marks by
// d's placeholders. So the statement must not contain these characters for another purpose.
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
