// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"database/sql/driver"
	"errors"
	"math"
	"reflect"
	"testing"
)

var (
	maria    = Dialect{Engine: MySQL, Division: Division{More: 4, Most: 38}}
	mysql    = Dialect{Engine: MySQL, Division: Division{More: 4, Most: 30, Rounds: true}}
	postgres = Dialect{Engine: PostgreSQL, Division: Division{Most: 1000}}
)

func integerConstant(v driver.Value) Expr { return Constant(v, Integer) }
func decimalConstant(v driver.Value) Expr { return Constant(v, Decimal) }

func computed(t *testing.T, e Expr) (driver.Value, error) {
	t.Helper()
	rows, err := readTo(Computed(Dialect{Engine: MySQL}, of([][]driver.Value{{nil}})[0], map[int]Expr{0: e}, nil))
	if err != nil {
		return nil, err
	}
	return rows[0][0], nil
}

// The values are those that MariaDB 10.11 and MySQL 9.7 returned.
func TestMySQLRoundsAQuotientBeforeFurtherComputationAndMariaDBAfter(t *testing.T) {
	for _, test := range []struct {
		dialect Dialect
		want    string
	}{{maria, "-159.285714"}, {mysql, "-159.285750"}} {
		e := Arithmetic(test.dialect, '*', Arithmetic(test.dialect, '/', decimalConstant("-446"), integerConstant(int64(7))), decimalConstant("2.50"))
		if got, err := computed(t, e); err != nil || got != test.want {
			t.Errorf("-446 / 7 * 2.50 is %v, %v; want %s", got, err, test.want)
		}
	}
}

// An average of MySQL has more digits than it shows, until it is computed with.
func TestMySQLRoundsAnAverageBehindAMinus(t *testing.T) {
	average := Arithmetic(maria, '/', integerConstant(int64(7)), integerConstant(int64(13)))
	for dialect, want := range map[Dialect]string{maria: "-0.538", mysql: "-0.539"} {
		e := Round(dialect, Arithmetic(dialect, '*', integerConstant(int64(-1)), average), 3)
		if got, err := computed(t, e); err != nil || string(got.([]byte)) != want {
			t.Errorf("ROUND(-AVG(x), 3) is %s, %v; want %s", got, err, want)
		}
	}
}

func TestNullIfOfMariaDBComparesQuotientsAsItReturnsThem(t *testing.T) {
	for dialect, null := range map[Dialect]string{maria: "0.5385", mysql: "0.538461538"} {
		average := Arithmetic(maria, '/', integerConstant(int64(7)), integerConstant(int64(13)))
		for _, other := range []string{"0.5385", "0.538461538"} {
			got, err := computed(t, NullIf(dialect, average, decimalConstant(other)))
			if err != nil || (got == nil) != (other == null) {
				t.Errorf("%+v: NULLIF(AVG(x), %s) is %v, %v", dialect.Division, other, got, err)
			}
		}
	}
}

func TestArithmeticFailsAsInTheDatabase(t *testing.T) {
	const most = int64(math.MaxInt64)
	one, none := integerConstant(int64(1)), Constant(nil, Integer)
	for name, test := range map[string]struct {
		expr Expr
		want driver.Value
		err  error
	}{
		"MySQL, too large":           {Arithmetic(mysql, '+', integerConstant(most), one), nil, ErrOverflow},
		"PostgreSQL, too large":      {Arithmetic(postgres, '+', integerConstant(most), one), nil, ErrOverflow},
		"SQLite, too large":          {Arithmetic(lite, '+', integerConstant(most), one), 0x1p63, nil},
		"MySQL, by zero":             {Arithmetic(mysql, '/', one, integerConstant(int64(0))), nil, nil},
		"PostgreSQL, by zero":        {Arithmetic(postgres, '/', one, integerConstant(int64(0))), nil, ErrDivision},
		"MySQL, integers":            {Arithmetic(mysql, '/', one, integerConstant(int64(3))), []byte("0.3333"), nil},
		"PostgreSQL, integers":       {Arithmetic(postgres, '/', integerConstant(int64(-7)), integerConstant(int64(2))), int64(-3), nil},
		"PostgreSQL, decimals":       {Arithmetic(postgres, '/', decimalConstant("7"), integerConstant(int64(2))), "3.5000000000000000", nil},
		"decimals keep their digits": {Arithmetic(mysql, '-', decimalConstant("1.50"), decimalConstant("0.5")), "1.00", nil},
		"digits of a product add up": {Arithmetic(mysql, '*', decimalConstant([]byte("-1.50")), decimalConstant([]byte("0.02"))), []byte("-0.0300"), nil},
		"MariaDB shows four digits":  {Arithmetic(maria, '+', Arithmetic(maria, '/', decimalConstant("-446"), integerConstant(int64(7))), decimalConstant("2.50")), "-61.2143", nil},
		"a float makes a float":      {Arithmetic(mysql, '*', decimalConstant("1.5"), Constant(2.0, Float)), 3.0, nil},
		"NULL":                       {Arithmetic(mysql, '+', one, none), nil, nil},
		"an unsigned integer":        {integerConstant(uint64(math.MaxUint64)), uint64(math.MaxUint64), nil},
		"a text that is no number":   {decimalConstant("x"), nil, ErrValue},
		"arithmetic of texts":        {Arithmetic(mysql, '+', one, Constant("1", Bytes)), nil, ErrUnsupported},
		"exact decimals":             {Comparison(mysql, ">", decimalConstant("0.30000000000000000001"), decimalConstant("0.3")), int64(1), nil},
		"a rounded decimal":          {Round(mysql, decimalConstant("-2.345"), 2), "-2.35", nil},
		"all digits of a quotient":   {Round(maria, Arithmetic(maria, '/', decimalConstant("5"), integerConstant(int64(3))), 6), "1.666667", nil},
		"a rounded quotient":         {Round(mysql, Arithmetic(mysql, '/', decimalConstant("5"), integerConstant(int64(3))), 6), "1.6667", nil},
		"a rounded whole number":     {Round(postgres, integerConstant(int64(7)), 2), []byte("7.00"), nil},
		"a rounded float":            {Round(mysql, Constant(2.5, Float), 0), 2.0, nil},
		"a rounded float of SQLite":  {Round(lite, Constant(2.5, Float), 0), 3.0, nil},
		"a decimal as an integer":    {ToInteger(postgres, decimalConstant("-2.5"), 64), int64(-3), nil},
		"a float as an integer":      {ToInteger(postgres, Constant(2.5, Float), 32), int64(2), nil},
		"NULL as an integer":         {ToInteger(mysql, none, 64), nil, nil},
		"the least 16 bits":          {ToInteger(postgres, integerConstant(int64(math.MinInt16)), 16), int64(math.MinInt16), nil},
		"more than 16 bits":          {ToInteger(postgres, decimalConstant("32767.5"), 16), nil, ErrOverflow},
		"more than 64 bits":          {ToInteger(mysql, decimalConstant("9223372036854775808"), 64), nil, ErrOverflow},
		"the least that fits":        {Fitting(integerConstant(int64(math.MinInt32)), 32), int64(math.MinInt32), nil},
		"what does not fit":          {Fitting(integerConstant(int64(math.MaxInt16+1)), 16), nil, ErrOverflow},
		"what is no whole number":    {Fitting(decimalConstant("32768.5"), 16), "32768.5", nil},
		"a float as a decimal":       {ToDecimal(mysql, Constant(36.5, Float), 5, 2), nil, ErrUnsupported},
		"a float of more bits":       {ToInteger(postgres, Constant(1e300, Float), 64), nil, ErrOverflow},
		"what is no number":          {ToInteger(postgres, Constant(math.NaN(), Float), 64), nil, ErrOverflow},
		"too large for its digits":   {ToDecimal(postgres, decimalConstant("1234.5"), 5, 2), nil, ErrOverflow},
		"MySQL's largest of these":   {ToDecimal(mysql, decimalConstant("1234.5"), 5, 2), "999.99", nil},
		"MariaDB's least of these":   {ToDecimal(maria, integerConstant(int64(-1000)), 5, 2), []byte("-999.99"), nil},
		"-x of an unsigned number":   {Negated(mysql, integerConstant(uint64(7))), int64(-7), nil},
		"-x of the largest one":      {Negated(mysql, integerConstant(uint64(math.MaxUint64))), nil, ErrOverflow},
		"the first that is not NULL": {Coalesce(none, one), int64(1), nil},
		"NULL for an equal":          {NullIf(mysql, one, decimalConstant("1.0")), nil, nil},
		"MariaDB's digits in floats": {Arithmetic(maria, '+', Arithmetic(maria, '/', integerConstant(int64(3)), integerConstant(int64(7))), Constant(0.0, Float)), 0.428571428, nil},
		"a text as a condition":      {Not(Constant("x", Bytes)), nil, ErrUnsupported},
		"too many digits":            {Arithmetic(mysql, '*', decimalConstant("0.1234567890123456"), decimalConstant("0.1234567890123456")), nil, ErrUnsupported},
		"an error in AND":            {And(Comparison(mysql, "=", none, none), Comparison(mysql, "=", one, decimalConstant("x"))), nil, ErrValue},
	} {
		got, err := computed(t, test.expr)
		if !errors.Is(err, test.err) || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v (%T), %v; want %v, %v", name, got, got, err, test.want, test.err)
		}
	}
}

func TestHavingKeepsRowsOfWhichTheConditionIsTrue(t *testing.T) {
	rows := of([][]driver.Value{{int64(1)}, {int64(5)}, {nil}, {int64(9)}})[0]
	condition := Comparison(lite, ">", Column(0, Stored), Argument(lite, 1))
	got := read(t, Filtered(rows, condition, []driver.Value{nil, int64(4)}))
	if want := [][]driver.Value{{int64(5)}, {int64(9)}}; !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

// A value of MySQL has the digits that the same expression has on one shard.
func TestAComputedValueHasTheFormThatTheDatabaseGivesIt(t *testing.T) {
	for name, test := range map[string]struct {
		of   driver.Value
		expr Expr
		want driver.Value
		err  error
	}{
		"more digits":  {[]byte("3.0000"), integerConstant(int64(0)), []byte("0.0000"), nil},
		"as a string":  {"3.5", decimalConstant([]byte("-7")), "-7.0", nil},
		"an integer":   {int64(3), decimalConstant("7"), int64(7), nil},
		"unsigned":     {int64(3), decimalConstant("9223372036854775808"), uint64(1 << 63), nil},
		"too large":    {int64(3), decimalConstant("18446744073709551616"), nil, ErrOverflow},
		"nothing":      {nil, decimalConstant("7.5"), "7.5", nil},
		"a double":     {0.5, decimalConstant("7.5"), 7.5, nil},
		"NULL":         {"3.5", Constant(nil, Decimal), nil, nil},
		"fewer digits": {"3.5", decimalConstant("7.25"), nil, ErrUnsupported},
		"a float":      {"3.5", Constant(7.5, Float), nil, ErrUnsupported},
	} {
		rows, err := readTo(Computed(Dialect{Engine: MySQL}, of([][]driver.Value{{test.of}})[0], map[int]Expr{0: test.expr}, nil))
		if !errors.Is(err, test.err) || err == nil && !reflect.DeepEqual(rows[0][0], test.want) {
			t.Errorf("%s: %v, %v; want %v, %v", name, rows, err, test.want, test.err)
		}
	}
}

// On SQLite the value of a shard may have another type: COALESCE(MIN(x), 0) is a text there, if all x of the shard are texts.
func TestAComputedValueOfSQLiteHasItsOwnType(t *testing.T) {
	for _, shards := range []driver.Value{"abc", []byte("1.50"), 0.5, int64(3), nil} {
		for _, want := range []driver.Value{int64(1), 1.5, nil} {
			rows := of([][]driver.Value{{shards}})[0]
			if got := read(t, Computed(lite, rows, map[int]Expr{0: Constant(want, Stored)}, nil)); got[0][0] != want {
				t.Errorf("beside %#v: %#v, want %#v", shards, got[0][0], want)
			}
		}
	}
}

// MySQL's 7 in COALESCE(SUM(price), 7) is 7.00.
func TestAQuotientHasMoreDigitsThanItsDividendHasInTheDatabase(t *testing.T) {
	for name, d := range map[string]Dialect{"MariaDB": maria, "MySQL": mysql} {
		quotient := Arithmetic(d, '/', WithDigits(integerConstant(int64(7)), 0), integerConstant(int64(3)))
		got := read(t, Computed(d, of([][]driver.Value{{[]byte("1.50"), nil}})[0], map[int]Expr{1: quotient}, nil))
		if want := []byte("2.333333"); !reflect.DeepEqual(got[0][1], want) {
			t.Errorf("%s: %s, want %s", name, got[0][1], want)
		}
	}
}

// PostgreSQL has no unsigned numbers, but an argument in an expression may be a uint64.
func TestASumWithAnUnsignedArgumentIsAnInt64OnPostgreSQL(t *testing.T) {
	sum := Arithmetic(postgres, '+', Column(1, Integer), integerConstant(uint64(2)))
	got := read(t, Computed(postgres, of([][]driver.Value{{int64(42), int64(40)}})[0], map[int]Expr{0: sum}, nil))
	if want := driver.Value(int64(42)); got[0][0] != want {
		t.Errorf("got %#v, want %#v", got[0][0], want)
	}
}

func TestAFloatIsADecimalBesideADecimalOfPostgreSQL(t *testing.T) {
	for want, e := range map[driver.Value]Expr{
		"0.300": Arithmetic(postgres, '*', decimalConstant("3.00"), Argument(postgres, 0)),
		0.2:     Arithmetic(mysql, '*', decimalConstant("2.00"), Argument(mysql, 0)),
		0.25:    Arithmetic(postgres, '*', Constant(2.5, Float), Argument(postgres, 0)),
	} {
		o, err := e(nil, []driver.Value{0.1})
		if got := o.result(); err != nil || got != want {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}

func TestZeroHasTheSignThatItsDatabaseGivesIt(t *testing.T) {
	zero := math.Copysign(0, -1)
	for name, test := range map[string]struct {
		dialect  Dialect
		negative bool
	}{"MariaDB": {maria, false}, "MySQL": {mysql, true}, "PostgreSQL": {postgres, true}} {
		rows := of([][]driver.Value{{zero}, {zero}})[0]
		sum := Grouped(rows, Grouping{Names: []string{"sum"}, Aggregates: []Aggregate{{Function: Sum, Kind: Float}}}, NewMemory(1<<20))
		same := Arithmetic(test.dialect, '*', Column(0, Float), Constant(1.0, Float))
		got := read(t, Computed(test.dialect, sum, map[int]Expr{0: same}, nil))
		if f, ok := got[0][0].(float64); !ok || math.Signbit(f) != test.negative {
			t.Errorf("%s: %v", name, got)
		}
	}
}
