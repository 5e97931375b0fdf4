package merge

import (
	"database/sql/driver"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"
)

var (
	maria    = Dialect{Engine: MySQL, Division: Division{More: 4, Most: 38}}
	mysql    = Dialect{Engine: MySQL, Division: Division{More: 4, Most: 30, Rounds: true}}
	postgres = Dialect{Engine: PostgreSQL, Division: Division{Most: 1000}}
)

func integerConstant(v driver.Value) Expr { return Constant(v, Type{Kind: Integer}) }
func decimalConstant(v driver.Value) Expr { return Constant(v, Type{Kind: Decimal}) }

func computed(t *testing.T, e Expr) (driver.Value, error) {
	t.Helper()
	rows, err := readTo(Computed(of([][]driver.Value{{nil}})[0], columns(1), []Expr{e}))
	if err != nil {
		return nil, err
	}
	return rows[0][0], nil
}

// The values are those that MariaDB 10.11 and MySQL 9.7 returned.
func TestMySQLRoundsAQuotientBeforeItGoesOnAndMariaDBAfter(t *testing.T) {
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

func TestArithmeticEndsAsItDoesInTheDatabase(t *testing.T) {
	const most = int64(math.MaxInt64)
	one, none := integerConstant(int64(1)), Constant(nil, Type{Kind: Integer})
	for name, test := range map[string]struct {
		expr Expr
		want driver.Value
		err  error
	}{
		"MySQL, too large":            {Arithmetic(mysql, '+', integerConstant(most), one), nil, ErrOverflow},
		"PostgreSQL, too large":       {Arithmetic(postgres, '+', integerConstant(most), one), nil, ErrOverflow},
		"SQLite, too large":           {Arithmetic(lite, '+', integerConstant(most), one), 0x1p63, nil},
		"MySQL, by zero":              {Arithmetic(mysql, '/', one, integerConstant(int64(0))), nil, nil},
		"PostgreSQL, by zero":         {Arithmetic(postgres, '/', one, integerConstant(int64(0))), nil, ErrDivision},
		"MySQL, integers":             {Arithmetic(mysql, '/', one, integerConstant(int64(3))), []byte("0.3333"), nil},
		"PostgreSQL, integers":        {Arithmetic(postgres, '/', integerConstant(int64(-7)), integerConstant(int64(2))), int64(-3), nil},
		"PostgreSQL, decimals":        {Arithmetic(postgres, '/', decimalConstant("1"), one), nil, ErrUnoffered},
		"decimals keep their digits":  {Arithmetic(mysql, '-', decimalConstant("1.50"), decimalConstant("0.5")), "1.00", nil},
		"digits of a product add up":  {Arithmetic(mysql, '*', decimalConstant([]byte("-1.50")), decimalConstant([]byte("0.02"))), []byte("-0.0300"), nil},
		"MariaDB shows four digits":   {Arithmetic(maria, '+', Arithmetic(maria, '/', decimalConstant("-446"), integerConstant(int64(7))), decimalConstant("2.50")), "-61.2143", nil},
		"a float makes a float":       {Arithmetic(mysql, '*', decimalConstant("1.5"), Constant(2.0, Type{Kind: Float})), 3.0, nil},
		"NULL":                        {Arithmetic(mysql, '+', one, none), nil, nil},
		"an unsigned integer":         {integerConstant(uint64(math.MaxUint64)), uint64(math.MaxUint64), nil},
		"a text that is no number":    {decimalConstant("x"), nil, ErrValue},
		"arithmetic of texts":         {Arithmetic(mysql, '+', one, Constant("1", Type{Kind: Bytes})), nil, ErrUnoffered},
		"a text beside a number":      {Comparison(mysql, "=", one, Constant("1", Type{Kind: Bytes})), nil, ErrUnoffered},
		"texts of several collations": {Comparison(mysql, "=", Constant("a", Type{Kind: Bytes}), Constant("a", Type{Kind: Bytes, Pad: []byte(" ")})), nil, ErrUnoffered},
		"padded texts":                {Comparison(mysql, "=", Constant("a", Type{Kind: Bytes, Pad: []byte(" ")}), Constant("a ", Type{Kind: Bytes, Pad: []byte(" ")})), int64(1), nil},
		"times":                       {Comparison(mysql, "<", Constant(time.Unix(1, 0), Type{Kind: Time}), Constant(time.Unix(2, 0), Type{Kind: Time})), int64(1), nil},
		"exact decimals":              {Comparison(mysql, ">", decimalConstant("0.30000000000000000001"), decimalConstant("0.3")), int64(1), nil},
		"a text as a condition":       {Not(Constant("x", Type{Kind: Bytes})), nil, ErrUnoffered},
		"another operator":            {Arithmetic(mysql, '%', one, one), nil, ErrUnoffered},
		"another comparison":          {Comparison(mysql, "LIKE", one, one), nil, ErrUnoffered},
		"too many digits":             {Arithmetic(mysql, '*', decimalConstant("0.1234567890123456"), decimalConstant("0.1234567890123456")), nil, ErrUnoffered},
		"an error in AND":             {And(Comparison(mysql, "=", none, none), Comparison(mysql, "=", one, decimalConstant("x"))), nil, ErrValue},
		"an IN list with NULL":        {In(mysql, one, integerConstant(int64(2)), none), nil, nil},
		"in an IN list with NULL":     {In(mysql, one, none, one), int64(1), nil},
		"not between, NULL":           {Not(Between(mysql, one, integerConstant(int64(2)), none)), int64(1), nil},
	} {
		got, err := computed(t, test.expr)
		if !errors.Is(err, test.err) || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v (%T), %v; want %v, %v", name, got, got, err, test.want, test.err)
		}
	}
}

func TestHavingKeepsRowsOfWhichTheConditionIsTrue(t *testing.T) {
	rows := of([][]driver.Value{{int64(1)}, {int64(5)}, {nil}, {int64(9)}})[0]
	condition := Comparison(lite, ">", Column(0, Type{Kind: Stored}), integerConstant(int64(4)))
	got := read(t, Filtered(rows, condition))
	if want := [][]driver.Value{{int64(5)}, {int64(9)}}; !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}
