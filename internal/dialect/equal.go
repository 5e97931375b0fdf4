// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// MaxEqual is the largest number of texts that one statement compares.
const MaxEqual = 10_000

// EqualTexts asks the server which of the texts a column treats as equal. For each group of equal
// texts it returns the indexes of the first and of the last one, in no particular order. It accepts
// at most MaxEqual texts.
func EqualTexts(ctx context.Context, db Querier, d Dialect, table, column string, c Column, texts []string) (pairs [][2]int, err error) {
	if len(texts) == 0 || c.Collation == "" {
		return nil, nil
	}
	args := make([]any, len(texts))
	for i, text := range texts {
		args[i] = text
	}
	err = Each(ctx, db, func(rows *sql.Rows) error {
		var pair [2]int
		err := rows.Scan(&pair[0], &pair[1])
		pairs = append(pairs, pair)
		return err
	}, "SELECT MIN(n), MAX(n) FROM ("+c.listed(d, table, column, len(texts))+") AS listed GROUP BY v HAVING MIN(n) < MAX(n)", args...)
	return pairs, err
}

// listed selects the indexes of arguments, n, and the arguments as values of the column, v. On
// MySQL and MariaDB the query names the collation, whose name begins with that of its character
// set. On other databases a UNION with a SELECT of the column gives the texts its collation.
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
