// SPDX-License-Identifier: Apache-2.0

package shardsql

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/internal/sqlparse"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/internal/catalog"
	"github.com/shardid/shardid/sharding/internal/columns"
	"github.com/shardid/shardid/sharding/internal/effects"
	"github.com/shardid/shardid/sharding/internal/plan"
	"github.com/shardid/shardid/sharding/internal/resultset"
)

// subqueries executes the subqueries of a query whose tables are not together in one database: see
// plan.Subquery.
type subqueries struct{ *conn }

// maxList bounds the values that a subquery on the right side of IN may return.
const maxList = 10_000

// ask sends a refused query with the results of its subqueries in their place; st is the prepared statement, or
// nil. It returns the refusal if no subquery can be executed before the query.
func (s subqueries) ask(ctx context.Context, st *statement, o *observation, query string, args []driver.NamedValue, refusal error) (driver.Rows, error) {
	if !s.admits(s.tx) || len(args) > 0 && args[0].Name != "" {
		return nil, refusal
	}
	made, _, err := s.planned(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case made.effects.About != nil:
		return nil, refusal
	}
	if !made.Copied() { // neither may a part of it be read from a copy
		ctx = sharding.Primary(ctx)
	}
	text, left, as, err := s.guarded(ctx, st, made.Plan, args)
	var absent *absentTableError
	switch {
	case errors.As(err, &absent):
		return nil, absent.beside(refusal)
	case err != nil:
		return nil, err
	case text == "":
		return nil, refusal
	}
	asText := false
	if len(left) > 0 {
		if asText, err = isUnprepared(ctx, s.database.server, s.on(s.database.home), st, args); err != nil {
			return nil, err
		}
	}
	own := o.described()
	rows, err := s.conn.ask(ctx, as, o, text, left)
	o.restore(own)
	if err == nil && asText {
		rows = resultset.AsText(rows)
	}
	return rows, err
}

// drain is ask for a query whose rows are discarded.
func (s subqueries) drain(ctx context.Context, o *observation, query string, args []driver.NamedValue, refusal error) (driver.Result, error) {
	rows, err := s.ask(ctx, nil, o, query, args, refusal)
	if err != nil {
		return nil, err
	}
	return driver.ResultNoRows, rows.Close()
}

// absentTableError is that of a subquery that names a table which the home database does not have. The name
// may be misspelt.
type absentTableError struct{ error }

// beside returns a refusal that also says which table is missing.
func (a *absentTableError) beside(refusal error) error {
	var r *sharding.RouteError
	if !errors.As(refusal, &r) {
		return refusal
	}
	both := *r
	both.Err = fmt.Errorf("%w, and a subquery cannot be executed before it: %w", r.Err, a.error)
	return &both
}

// guarded is executed with a savepoint in a transaction of PostgreSQL, which an error would abort: that a subquery
// depends on the query around it may only show when PostgreSQL misses a column.
func (s subqueries) guarded(ctx context.Context, st *statement, p *plan.Plan, args []driver.NamedValue) (text string, left []driver.NamedValue, as *statement, err error) {
	if len(plan.Subqueries(p)) == 0 {
		return "", nil, nil, nil
	}
	if err := s.guard(ctx, effects.Set, "SAVEPOINT "); err != nil {
		return "", nil, nil, err
	}
	text, left, as, err = s.executed(ctx, st, p, args)
	if err == nil || isRefusal(err) {
		err = dialect.JoinErrors(err, s.guard(ctx, effects.Release, "RELEASE SAVEPOINT "))
	}
	return text, left, as, err
}

// guard executes a statement on the savepoint of guarded, if there is one.
func (s subqueries) guard(ctx context.Context, verb effects.Savepoint, text string) error {
	if s.tx == nil || s.database.server.Name() != "postgres" {
		return nil
	}
	const name = "shardid_subquery"
	_, err := s.tx.execSavepoint(ctx, verb, name, text+name)
	return err
}

// executed returns the text of a query with the results of its subqueries in their place, its
// arguments, and once if it must be prepared. The text is "" if no subquery can be executed. One that depends
// on the query around it fails, because a column is missing, and stays.
func (s subqueries) executed(ctx context.Context, st *statement, p *plan.Plan, args []driver.NamedValue) (text string, left []driver.NamedValue, as *statement, err error) {
	if len(args) != plan.Parameters(p) {
		return "", nil, nil, nil
	}
	if s.home.SQL == nil { // the query may have to wait for another statement, which waits for the connection
		defer func() { err = dialect.JoinErrors(err, leaveHome(&s.session)) }()
	}
	var done []plan.Subquery
	var results []plan.Result
	left = slices.Clone(args)
	for _, sub := range plan.Subqueries(p) {
		excluded, err := s.excludes(ctx, p, sub, st, args)
		if err != nil {
			return "", nil, nil, err
		}
		if excluded {
			continue
		}
		result, values, err := s.result(ctx, p, sub, args)
		if err != nil {
			return "", nil, nil, err
		}
		if result == "" {
			continue
		}
		done, results = append(done, sub), append(results, plan.Result{Text: result, Values: len(values)})
		for _, v := range values {
			left = append(left, driver.NamedValue{Ordinal: len(left) + 1, Value: v})
		}
	}
	if len(done) == 0 {
		return "", nil, nil, nil
	}
	binary, err := isBinary(ctx, s.database.server, s.on(s.database.home), st, args)
	if err != nil {
		return "", nil, nil, err
	}
	if binary {
		as = once
	}
	text, which := plan.Substituted(p, done, results)
	return text, chosen(left, which), as, nil
}

// excludes reports whether the result of a subquery must not become arguments: a text without arguments would be
// prepared then, and its values would have other digits.
func (s subqueries) excludes(ctx context.Context, p *plan.Plan, sub plan.Subquery, st *statement, args []driver.NamedValue) (bool, error) {
	if sub.Collation == "" || !plan.HasSingles(p) {
		return false, nil
	}
	return isUnprepared(ctx, s.database.server, s.on(s.database.home), st, args)
}

// admits reports whether subqueries may be executed in a transaction. One that may not span databases must have
// begun: a subquery must not choose its database.
func (s subqueries) admits(t *transaction) bool {
	return t == nil || t.spans || t.began()
}

// result executes a subquery, and returns its result as it is written in the text, and the arguments of that.
// It returns "" if the subquery cannot be executed alone, or if its result cannot be written.
func (s subqueries) result(ctx context.Context, p *plan.Plan, sub plan.Subquery, args []driver.NamedValue) (string, []driver.Value, error) {
	text, which := plan.Executed(p, sub)
	own, _, err := s.planned(ctx, text)
	if err != nil || !plan.StandsAlone(own.Plan, sub) {
		return "", nil, err
	}
	rows, err := s.rows(ctx, text, chosen(args, which))
	if rows == nil {
		return "", nil, err
	}
	w, values, err := s.read(rows, sub)
	switch {
	case err != nil || w.engine == "":
		return "", nil, err
	case len(values) > maxList:
		return "", nil, &sharding.RouteError{Op: "query", Err: sharding.ErrUnmergeable, Hint: fmt.Sprintf("a subquery after IN returned more than %d values; join the tables, or read the values in parts and pass them as arguments", maxList)}
	case sub.Collation != "":
		text, values := w.arguments(values)
		return text, values, nil
	}
	text, err = s.number(ctx, p, w, values, args)
	return text, nil, err
}

// number returns the literals of numbers.
func (s subqueries) number(ctx context.Context, p *plan.Plan, w resultWriter, values []driver.Value, args []driver.NamedValue) (string, error) {
	isMariaDB := s.database.server.Reads.Family == sqlparse.MariaDB
	switch {
	case isMariaDB && w.isNarrow():
		return "", nil
	case !w.isShort():
		return w.written(values), nil
	case !w.of.Compared || w.of.List:
		return "", nil
	}
	summed, which := plan.Averaged(p, w.of)
	switch {
	case summed == "":
		return "", nil
	case isMariaDB: // compares what it shows
		return w.written(values), nil
	}
	return s.average(ctx, w.of, summed, chosen(args, which))
}

// rows executes a subquery. It returns nil if it cannot be executed alone.
func (s subqueries) rows(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.conn.ask(ctx, nil, nil, text, args)
	if isRefusal(err) {
		rows, err = s.ask(ctx, nil, nil, text, args, err)
	}
	var moved *sharding.MovedError
	switch {
	case errors.As(err, &moved), errors.Is(err, sharding.ErrSlotMoving), errors.Is(err, sharding.ErrStaleMap): // it can be executed later
		return nil, err
	case dialect.FaultOf(err) == dialect.NoTable && !isRefusal(err):
		return nil, &absentTableError{err}
	case isRefusal(err):
		return nil, nil //nolint:nilnil // it is no error of the query
	case dialect.FaultOf(err) == dialect.NoColumn: // neither
		return nil, s.guard(ctx, effects.RollbackTo, "ROLLBACK TO SAVEPOINT ")
	case err != nil:
		return nil, err
	}
	return rows, nil
}

// average returns an average of decimals with all digits that MySQL compares; text returns its sum and count.
func (s subqueries) average(ctx context.Context, sub plan.Subquery, text string, args []driver.NamedValue) (string, error) {
	of, err := s.rows(ctx, text, args)
	if of == nil {
		return "", err
	}
	sums, err := firstRows(of, 2)
	if err != nil || len(sums) != 1 {
		return "", err
	}
	result := quotient(asText(sums[0][0]), asText(sums[0][1]))
	if result == "" {
		return "", nil
	}
	return resultWriter{engine: "mysql", of: sub}.unconverted(result), nil
}

// asText returns a number that a driver returns as a number or a text.
func asText(v driver.Value) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

// maxScale is how many digits behind the point a decimal literal of MySQL has at most.
const maxScale = 30

// quotient returns the digits of a quotient that MySQL computes: four more than the sum has behind its point,
// in words of nine. It returns NULL if there are no numbers, and "" for more digits than a literal keeps.
func quotient(sum, count string) string {
	const word, more = 9, 4
	whole, fraction, _ := strings.Cut(sum, ".")
	words := (len(fraction) + word - 1) / word * word
	digits := (words + max(0, more-(words-len(fraction))) + word - 1) / word * word
	if digits > maxScale {
		return ""
	}
	all, isSum := new(big.Int).SetString(whole+fraction+strings.Repeat("0", digits-len(fraction)), 10)
	by, isCount := new(big.Int).SetString(count, 10)
	if !isSum || !isCount || by.Sign() == 0 {
		return "NULL"
	}
	text := new(big.Int).Quo(new(big.Int).Abs(all), by).String()
	text = strings.Repeat("0", max(0, digits+1-len(text))) + text
	return map[bool]string{true: "-"}[all.Sign() < 0] + text[:len(text)-digits] + "." + text[len(text)-digits:]
}

// read returns the first values of a result, and their writer. There are none if it has several columns.
func (s subqueries) read(of driver.Rows, sub plan.Subquery) (w resultWriter, values []driver.Value, err error) {
	if len(of.Columns()) != 1 {
		return w, nil, of.Close()
	}
	typed := resultset.Described{Rows: of}
	w = resultWriter{engine: s.database.server.Name(), typeName: strings.ToUpper(typed.ColumnTypeDatabaseTypeName(0)), of: sub}
	_, w.scale, w.scaled = typed.ColumnTypePrecisionScale(0)
	most := maxList
	if !sub.List {
		most = 1
	}
	all, err := firstRows(of, most)
	for _, row := range all {
		values = append(values, row[0])
	}
	return w, values, err
}

// firstRows returns the rows of a result, at most one more than there may be, and closes it.
func firstRows(of driver.Rows, most int) (all [][]driver.Value, err error) {
	defer func() { err = dialect.JoinErrors(err, of.Close()) }()
	for len(all) <= most {
		row := make([]driver.Value, len(of.Columns()))
		switch err := of.Next(row); {
		case resultset.IsEOF(err):
			return all, nil
		case err != nil:
			return nil, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = bytes.Clone(b) // the driver reuses it
			}
		}
		all = append(all, row)
	}
	return all, nil
}

// resultWriter writes the result of a subquery. It writes numbers and NULL as literals, and the texts, bytes and
// times of a column as arguments, if the column beside them has the same collation or type.
type resultWriter struct {
	engine   string // "mysql", "postgres" or "sqlite"
	typeName string // as the driver names the type, in capitals
	scale    int64  // the digits behind the point of a decimal
	scaled   bool   // scale is known
	of       plan.Subquery
}

// written returns "" if a value cannot be written. Several rows of a scalar are an error of the database,
// except on SQLite, which takes one of them.
func (w resultWriter) written(values []driver.Value) string {
	if w.of.List && len(values) == 0 {
		return w.none()
	}
	if !w.of.List {
		switch len(values) {
		case 0:
			values = []driver.Value{nil}
		case 1:
		default:
			return ""
		}
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
		return w.unconverted(literals)
	default:
		return w.converting(texts)
	}
}

// arguments returns the text of a result that is passed as arguments, and these. The text is "" if a value
// cannot be passed.
func (w resultWriter) arguments(values []driver.Value) (text string, args []driver.Value) {
	switch {
	case w.of.List && len(values) == 0:
		return w.empty(w.textNull()), nil
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
func (w resultWriter) argument(v driver.Value) driver.Value {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		if w.engine == "sqlite" || w.of.Collation == catalog.AsBytes {
			return v
		}
		return string(v) // bytes would be compared by themselves
	case time.Time:
		if w.typeName == "TIME" && v.Day() == 2 { // lib/pq reads 24:00 as midnight of the next day, and would send 00:00
			return "24:00:00"
		}
		if w.engine == "postgres" || w.engine == "mysql" && v.Location() == time.UTC { // another zone may lack the clock's time
			return v
		}
	}
	return nil
}

// isRounded reports whether MySQL compares a value of a list in another way than that of a subquery: it takes a
// float for an integer beside one, and an integer for a float beside one.
func (w resultWriter) isRounded(text string) bool {
	const exact = 15 // digits of any float
	return w.engine == "mysql" && w.of.List && (w.typeName == "DOUBLE" || !w.of.Exact && len(text) > exact)
}

// isNarrow reports whether no literal has the type of the value. MariaDB returns a FLOAT for a FLOAT beside such a
// value in COALESCE, and a DOUBLE beside a wider one.
func (w resultWriter) isNarrow() bool {
	return (w.typeName == "TINYINT" || w.typeName == "SMALLINT" || w.typeName == "MEDIUMINT") && !w.of.Compared && !w.of.Constant
}

// isShort reports whether the value has more digits than its text.
func (w resultWriter) isShort() bool {
	return w.engine == "mysql" && w.typeName == "DECIMAL" && w.of.Divides && !w.of.Shown
}

// unconverted returns literals in a form that MySQL does not convert to the type of a column: it takes 8 for
// 2008 beside a YEAR, and a float for an integer beside one. A list has no such form.
func (w resultWriter) unconverted(literals string) string {
	if w.of.List {
		return literals
	}
	return "SELECT v FROM (SELECT " + literals + " AS v) AS t"
}

// converting returns literals in a form to which SQLite converts a text that is compared with them, as it does
// beside a column of numbers. The type of a column without a type is unknown.
func (w resultWriter) converting(literals []string) string {
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

// numeric is the name of a type of SQLite's columns of numbers.
var numeric = regexp.MustCompile(`INT|^(REAL|DOUBLE|FLOAT|NUMERIC|DECIMAL)`)

// value returns the literal of a value, "" if it cannot be written. Outside of comparisons a literal
// has the type of the column, and so has a float of PostgreSQL, which compares with a decimal as a float.
func (w resultWriter) value(v driver.Value) string {
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
func (w resultWriter) typed(text string) string {
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
func (w resultWriter) number(v driver.Value) string {
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

// printed is a number that a driver returns as a text.
var printed = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// isNumber reports whether the type is one of numbers whose literals are exact. A FLOAT of MySQL and a
// real of PostgreSQL are printed with fewer digits than they have, and a DOUBLE(10,2) with a fixed number of them.
// The values of SQLite have types of their own.
func (w resultWriter) isNumber() bool {
	fixed := w.typeName == "DOUBLE" && w.scaled && w.scale < columns.NotFixed
	return w.engine == "sqlite" || exactNumbers[strings.TrimPrefix(w.typeName, "UNSIGNED ")] && !fixed
}

var exactNumbers = map[string]bool{
	"TINYINT": true, "SMALLINT": true, "MEDIUMINT": true, "INT": true, "BIGINT": true, "DECIMAL": true, "DOUBLE": true,
	"INT2": true, "INT4": true, "INT8": true, "NUMERIC": true, "FLOAT8": true,
}

// none returns an empty list of numbers.
func (w resultWriter) none() string {
	if !w.isNumber() {
		return ""
	}
	return w.empty(w.typed("NULL"))
}

// textNull is a NULL with the type of a text, of bytes or of a UUID.
func (w resultWriter) textNull() string {
	if w.engine == "postgres" {
		return "CAST(NULL AS " + w.typeName + ")"
	}
	return "NULL"
}

// empty returns an empty list of values with the type of NULL, which SQL cannot write as a list.
func (w resultWriter) empty(null string) string {
	if w.engine == "mysql" {
		return "SELECT NULL HAVING FALSE" // MariaDB has no WHERE without FROM
	}
	return "SELECT " + null + " WHERE FALSE"
}
