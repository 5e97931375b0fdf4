// SPDX-License-Identifier: Apache-2.0

package resultset

import (
	"database/sql/driver"
	"slices"
	"strings"
)

// labelled are rows whose columns have the names that one table would have given them.
type labelled struct {
	Described

	logical *strings.Replacer
}

func (l labelled) Columns() []string {
	columns := slices.Clone(l.Rows.Columns())
	for i, name := range columns {
		columns[i] = l.logical.Replace(name)
	}
	return columns
}

// Relabel returns rows whose columns have the names that one table would have given them.
func Relabel(r driver.Rows, logical *strings.Replacer) driver.Rows {
	return labelled{Described{r}, logical}
}
