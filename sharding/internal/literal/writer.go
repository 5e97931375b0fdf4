// SPDX-License-Identifier: Apache-2.0

package literal

import (
	"database/sql/driver"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/columns"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// Writer writes the result of a subquery. It writes numbers and NULL as literals, and the texts, bytes and
// times of a column as arguments, if the column beside them has the same collation or type.
type Writer struct {
	engine   string // "mysql", "postgres" or "sqlite"
	typeName string // as the driver names the type, in capitals
	scale    int64  // the digits behind the point of a decimal
	scaled   bool   // scale is known
	of       plan.Subquery
}

// NewWriter returns the writer for the only column of a result.
func NewWriter(engine string, column resultset.DescribedRows, of plan.Subquery) *Writer {
	w := &Writer{engine: engine, typeName: strings.ToUpper(column.ColumnTypeDatabaseTypeName(0)), of: of}
	_, w.scale, w.scaled = column.ColumnTypePrecisionScale(0)
	return w
}

// Literals returns "" if a value cannot be written. Several rows of a scalar are an error of the database,
// except on SQLite, which takes one of them.
func (w *Writer) Literals(values []driver.Value) string {
	switch {
	case w.of.List && len(values) == 0:
		if !w.isNumber() {
			return ""
		}
		return w.empty()
	case !w.of.List && len(values) > 1:
		return ""
	case len(values) == 0:
		values = []driver.Value{nil}
	}
	texts := make([]string, len(values))
	for i, v := range values {
		if texts[i] = w.value(v); texts[i] == "" || w.isRounded(texts[i]) {
			return ""
		}
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	switch literals := strings.Join(texts, ", "); {
	case w.of.Constant:
		return literals
	case w.engine == "postgres" && w.of.List: // the type of literals depends on the column beside them
		return "VALUES (" + strings.Join(texts, "), (") + ")"
	case w.engine == "postgres":
		return literals
	case w.engine == "mysql":
		return Unconverted(w.of, literals)
	default:
		return w.converting(texts)
	}
}

// Arguments returns the text of a result that is passed as arguments, and these. The text is "" if a value
// cannot be passed.
func (w *Writer) Arguments(values []driver.Value) (text string, args []driver.Value) {
	switch {
	case w.of.List && len(values) == 0:
		return w.empty(), nil
	case len(values) == 0:
		return "NULL", nil
	case !w.of.List && len(values) > 1:
		return "", nil
	}
	var parts []string
	seen := map[string]bool{}
	for _, v := range values {
		if v == nil {
			parts = append(parts, "NULL")
			continue
		}
		if v = w.argument(v); v == nil {
			return "", nil
		}
		if key := fmt.Sprintf("%T%s", v, v); !seen[key] {
			seen[key] = true
			parts, args = append(parts, "?"), append(args, v)
		}
	}
	return strings.Join(parts, ", "), args
}

// argument returns the argument that has a value of a column in the database again, nil if there is none.
func (w *Writer) argument(v driver.Value) driver.Value {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		if w.engine == "sqlite" || w.of.Collation == catalog.AsBytes {
			return append([]byte{}, v...) // lib/pq reads no bytes as nil, which it would send as NULL
		}
		return string(v) // bytes would be compared by themselves
	case time.Time:
		if w.typeName == "TIME" && v.Day() == 2 { // lib/pq reads 24:00 as midnight of the next day, and would send 00:00
			return "24:00:00"
		}
		switch {
		case w.engine == "postgres":
			return v
		case w.engine != "mysql" || v.Location() != time.UTC || v.IsZero(): // another zone may lack the clock's time; 0000-00-00 and 0001-01-01 are read as one
		case w.typeName == "DATE":
			return v.Format(time.DateOnly)
		default: // its driver may truncate the time of an argument
			return v.Format("2006-01-02 15:04:05.999999")
		}
	}
	return nil
}

// isRounded reports whether MySQL compares a value of a list in another way than that of a subquery: it takes a
// float for an integer beside one, and an integer for a float beside one.
func (w *Writer) isRounded(text string) bool {
	const exact = 15 // digits of any float
	return w.engine == "mysql" && w.of.List && (w.typeName == "DOUBLE" || !w.of.Exact && len(text) > exact)
}

// IsNarrow reports whether no literal has the type of a value of MySQL or MariaDB, and that matters. MariaDB returns a FLOAT
// for a FLOAT beside such a value in COALESCE, and a DOUBLE beside a wider one. The driver reads unsigned numbers that may be
// larger than an int64 as uint64, and all others as int64.
func (w *Writer) IsNarrow(onMariaDB bool) bool {
	name, isUnsigned := strings.CutPrefix(w.typeName, "UNSIGNED ")
	switch {
	case w.of.Compared:
		return false
	case isUnsigned:
		return strings.HasSuffix(name, "INT") && name != "BIGINT"
	}
	return onMariaDB && !w.of.Constant && (name == "TINYINT" || name == "SMALLINT" || name == "MEDIUMINT")
}

// IsShort reports whether the value has more digits than its text.
func (w *Writer) IsShort() bool {
	return w.engine == "mysql" && w.typeName == "DECIMAL" && w.of.Divides && !w.of.Shown
}

// Unconverted returns literals in a form that MySQL does not convert to the type of a column: it takes 8 for
// 2008 beside a YEAR, and a float for an integer beside one. A list has no such form.
func Unconverted(of plan.Subquery, literals string) string {
	if of.List {
		return literals
	}
	return "SELECT v FROM (SELECT " + literals + " AS v) AS t"
}

// converting returns literals in a form to which SQLite converts a text that is compared with them, as it does
// beside a column of numbers. The type of a column without a type is unknown.
func (w *Writer) converting(literals []string) string {
	switch {
	case w.of.Computed:
		return strings.Join(literals, ", ")
	case !numeric.MatchString(w.typeName):
		return ""
	case w.of.List:
		return "SELECT CAST(column1 AS NUMERIC) FROM (VALUES (" + strings.Join(literals, "), (") + "))"
	case strings.Contains(literals[0], "."), strings.Contains(literals[0], "e"):
		return "CAST(" + literals[0] + " AS REAL)"
	}
	return "CAST(" + literals[0] + " AS INTEGER)"
}

// value returns the literal of a value, "" if it cannot be written. Outside of comparisons a literal
// has the type of the column, and so has a float of PostgreSQL, which compares with a decimal as a float.
func (w *Writer) value(v driver.Value) string {
	if !w.isNumber() {
		return ""
	}
	text := "NULL"
	if v != nil {
		text = w.number(v)
	}
	if text == "" || w.of.Compared && w.typeName != "FLOAT8" && (v != nil || w.engine != "postgres") {
		return text
	}
	return w.typed(text)
}

// typed returns a literal with the type of the column. A decimal literal with a point has it already.
func (w *Writer) typed(text string) string {
	isNull, isUnsigned := text == "NULL", strings.HasPrefix(w.typeName, "UNSIGNED")
	switch {
	case w.engine == "postgres" && strings.HasPrefix(w.typeName, "INT"):
		return "CAST(" + text + " AS " + w.typeName + ")"
	case w.engine == "postgres" && (w.typeName != "NUMERIC" || !strings.Contains(text, ".")):
		return "CAST(" + map[bool]string{true: text, false: "'" + text + "'"}[isNull] + " AS " + w.typeName + ")"
	case w.engine == "mysql" && isUnsigned:
		return "CAST(" + text + " AS UNSIGNED)"
	case w.engine == "mysql" && !w.of.Constant && strings.HasSuffix(w.typeName, "INT") && w.typeName != "INT": // COALESCE with a FLOAT is a FLOAT
		return "CAST(" + text + " AS SIGNED)"
	case w.engine == "mysql" && !isNull && w.typeName == "DECIMAL" && !strings.Contains(text, "."):
		return text + "." // an integer would overflow earlier
	case w.engine != "mysql" || !isNull:
		return text
	case w.typeName == "DOUBLE":
		return "NULL + 0E0"
	case w.typeName == "DECIMAL":
		return fmt.Sprintf("CAST(NULL AS DECIMAL(65, %d))", w.scale)
	}
	return "CAST(NULL AS SIGNED)"
}

// number returns the literal of a number, "" for another value. One with an exponent is a float.
func (w *Writer) number(v driver.Value) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			return strconv.FormatFloat(v, 'e', -1, 64)
		}
	case []byte:
		return w.number(string(v))
	case string:
		if w.engine != "sqlite" && printed.MatchString(v) {
			return v + map[bool]string{true: "e0"}[w.typeName == "DOUBLE"]
		}
	}
	return ""
}

// isNumber reports whether the type is one of numbers whose literals are exact. A FLOAT of MySQL and a
// real of PostgreSQL are printed with fewer digits than they have, and a DOUBLE(10,2) with a fixed number of them.
// The values of SQLite have types of their own.
func (w *Writer) isNumber() bool {
	fixed := w.typeName == "DOUBLE" && w.scaled && w.scale < columns.NotFixed
	return w.engine == "sqlite" || exactNumbers[strings.TrimPrefix(w.typeName, "UNSIGNED ")] && !fixed
}

// empty returns an empty list of values with the type of the column, which SQL cannot write as a list.
func (w *Writer) empty() string {
	if w.engine == "mysql" {
		return "SELECT NULL HAVING FALSE" // MariaDB has no WHERE without FROM
	}
	return "SELECT " + w.typed("NULL") + " WHERE FALSE"
}

// numeric is the name of a type of SQLite's columns of numbers.
var numeric = regexp.MustCompile(`INT|^(REAL|DOUBLE|FLOAT|NUMERIC|DECIMAL)`)

// printed is a number that a driver returns as a text.
var printed = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

var exactNumbers = map[string]bool{
	"TINYINT": true, "SMALLINT": true, "MEDIUMINT": true, "INT": true, "BIGINT": true, "DECIMAL": true, "DOUBLE": true,
	"INT2": true, "INT4": true, "INT8": true, "NUMERIC": true, "FLOAT8": true,
}
