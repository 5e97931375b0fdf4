// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"fmt"
	"strings"
)

// MaxEqual is how many texts one statement compares.
const MaxEqual = 10_000

// EqualTexts asks the server which texts a column takes for equal. Of each group of
// equal ones it returns the places of the first and of the last, in no order. The
// texts are at most MaxEqual.
func EqualTexts(ctx context.Context, db Querier, d Dialect, table, column string, c Column, texts []string) (pairs [][2]int, err error) {
	if len(texts) == 0 || c.Collation == "" {
		return nil, nil
	}
	args := make([]any, len(texts))
	for i, text := range texts {
		args[i] = text
	}
	rows, err := db.QueryContext(ctx, "SELECT MIN(n), MAX(n) FROM ("+c.listed(d, table, column, len(texts))+") AS listed GROUP BY v HAVING MIN(n) < MAX(n)", args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var pair [2]int
		if err := rows.Scan(&pair[0], &pair[1]); err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	return pairs, rows.Err()
}

// listed selects the places of arguments, n, and the arguments as the column holds
// them, v. In MySQL's family a collation is told by its name, which begins with that of
// its character set. Elsewhere texts behind a SELECT of the column are compared by its
// collation.
func (c Column) listed(d Dialect, table, column string, texts int) string {
	row, between, first := "(%d, %s)", ", ", "SELECT 0 AS n, "+d.Quote(column)+" AS v FROM "+d.Quote(table)+" WHERE 1 = 0 UNION ALL VALUES "
	switch d.Name() {
	case "mysql":
		charset, _, _ := strings.Cut(c.Collation, "_")
		row, between, first = "SELECT %d AS n, CONVERT(%s USING "+charset+") COLLATE "+c.Collation+" AS v", " UNION ALL ", ""
	case "postgres":
		row = "(%d, CAST(%s AS " + c.Type + "))"
	}
	rows := make([]string, texts)
	for i := range rows {
		rows[i] = fmt.Sprintf(row, i, d.Placeholder(i+1))
	}
	return first + strings.Join(rows, between)
}
