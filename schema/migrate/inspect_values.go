package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// lost is a condition under which a value would not come out of a shard as it is.
type lost struct{ column, condition, message, fix string }

// mysqlValues looks for such values, in one reading of the table.
func (p probe) mysqlValues(ctx context.Context) error {
	var all []lost
	var selected []string
	for _, c := range p.shape.columns {
		name := p.side.Quote(c.name)
		if l, some := c.lost(name); some {
			all = append(all, l)
			selected = append(selected, "COALESCE(SUM("+l.condition+"), 0)", "COALESCE(MIN(IF("+l.condition+", "+p.side.Quote(p.shape.key)+", NULL)), 0)")
		}
	}
	if len(all) == 0 {
		return nil
	}
	numbers := make([]int64, len(selected))
	into := make([]any, len(selected))
	for i := range numbers {
		into[i] = &numbers[i]
	}
	if err := p.QueryRowContext(ctx, "SELECT "+strings.Join(selected, ", ")+" FROM "+p.side.Quote(p.shape.name)).Scan(into...); err != nil {
		return err
	}
	for i, l := range all {
		if n := numbers[2*i]; n > 0 {
			p.add(LostValue, Block, fmt.Sprintf("%s %s in %s, the first of which is row %d", l.column, l.message, rowsOf(n), numbers[2*i+1]), l.fix)
		}
	}
	return nil
}

// lost says which values of a column a copy would change; some is false when it has
// none.
func (c column) lost(name string) (l lost, some bool) {
	switch {
	case c.typ == "enum":
		return lost{c.name, name + "+0 = 0", "has the empty value that stands for one which was not allowed", "give it a member of the ENUM, or NULL"}, true
	case c.typ == "json": // of MySQL, which keeps more of a number than its text says
		text := "CAST(" + name + " AS CHAR)"
		return lost{c.name, "CAST(CAST(CAST(" + text + " AS JSON) AS CHAR) AS BINARY) <> CAST(" + text + " AS BINARY)",
			"has a DECIMAL inside, which as text becomes a DOUBLE", "MODIFY the column to LONGTEXT and back, as an UPDATE to an equal number changes nothing, and have the application put such numbers in as texts"}, true
	case c.holdsUnknown():
		return lost{c.name, mysqlUnknown(c, name), "has bytes that are no character of " + c.charset + ", or not that one alone",
			"UPDATE it to CONVERT(CONVERT(" + name + " USING utf8mb4) USING " + c.charset + ") where the result is right, or make the column VARBINARY or BLOB"}, true
	}
	return l, false
}

// holdsUnknown: there are bytes in the character set that do not survive the way into
// utf8mb4 and back.
func (c column) holdsUnknown() bool {
	return (strings.HasSuffix(c.typ, "char") || strings.HasSuffix(c.typ, "text")) && c.charset != "" &&
		!slices.Contains([]string{"utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"}, c.charset)
}

// mysqlUnknown is true of such bytes.
func mysqlUnknown(c column, name string) string {
	return "CAST(CONVERT(CONVERT(" + name + " USING utf8mb4) USING " + c.charset + ") AS BINARY) <> CAST(" + name + " AS BINARY)"
}
