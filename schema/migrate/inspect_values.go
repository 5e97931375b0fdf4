package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/shardid/shardid/internal/dialect"
)

// lost is a condition under which a value would not come out of a shard as it is.
type lost struct{ column, condition, message, fix string }

// mysqlValues looks for such values, in one reading of the table when there are none.
func (p probe) mysqlValues(ctx context.Context) error {
	var all []lost
	var selected []string
	key := p.side.Quote(p.shape.key)
	for _, c := range p.shape.columns {
		if l, some := c.lost(p.side.Quote(c.name)); some {
			all = append(all, l)
			selected = append(selected, "MIN(IF("+l.condition+", "+key+", NULL))")
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := make([]sql.NullInt64, len(all))
	into := make([]any, len(all))
	for i := range first {
		into[i] = &first[i]
	}
	from := " FROM " + p.side.Quote(p.shape.name)
	if err := p.QueryRowContext(ctx, "SELECT "+strings.Join(selected, ", ")+from).Scan(into...); err != nil {
		return err
	}
	for i, l := range all {
		if !first[i].Valid {
			continue
		}
		n, err := p.number(ctx, "SELECT COUNT(*)"+from+" WHERE "+l.condition)
		if err != nil {
			return err
		}
		p.add(LostValue, Block, fmt.Sprintf("%s %s in %s, the first of which is row %d", l.column, l.message, rowsOf(n), first[i].Int64), l.fix)
	}
	return nil
}

// refusal is why a row is not read that has such a value in the column.
func (c column) refusal(d dialect.Dialect) error {
	l, _ := c.lost(d.Quote(c.name))
	return fmt.Errorf("%w: %s %s: %s", ErrUnsupported, l.column, l.message, l.fix)
}

// lost says which values of a column a copy would change; some is false when it has
// none.
func (c column) lost(name string) (l lost, some bool) {
	switch {
	case c.typ == "enum":
		return lost{c.name, name + "+0 = 0", "has the empty value that stands for one which was not allowed", "give it a member of the ENUM, or NULL"}, true
	case c.typ == "json": // of MySQL, which keeps more of a value than its text says
		return lost{c.name, mysqlTyped(name), "has a DECIMAL, a date, a time or bytes inside, which as text become a DOUBLE or a string",
			"MODIFY the column to LONGTEXT and back, as an UPDATE to an equal number changes nothing, and have the application put such values in as texts"}, true
	case c.holdsUnknown():
		return lost{c.name, mysqlUnknown(c, name), "has bytes that are no character of " + c.charset + ", or not that one alone",
			"UPDATE it to CONVERT(CONVERT(" + name + " USING utf8mb4) USING " + c.charset + ") where the result is right, or make the column VARBINARY or BLOB"}, true
	}
	return l, false
}

// mysqlTyped is true of JSON with a value, at whatever depth, of a type that its text
// does not tell. An unsigned integer is none: it is the same number without a sign.
func mysqlTyped(name string) string {
	const told = "NOT IN ('NULL','BOOLEAN','INTEGER','UNSIGNED INTEGER','DOUBLE','STRING','OBJECT','ARRAY')"
	inside := func(path string) string {
		return "EXISTS(SELECT 1 FROM JSON_TABLE(" + name + ",'" + path + "' COLUMNS(v JSON PATH '$' ERROR ON ERROR)) AS inside WHERE JSON_TYPE(v) " + told + ")"
	}
	return "(JSON_TYPE(" + name + ") " + told + " OR " + inside("$**.*") + " OR " + inside("$**[*]") + ")"
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
