// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"database/sql"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/export"
)

func TestShardingSphereGolden(t *testing.T) {
	block := func(name string) sharding.Table {
		var targets []sharding.Target
		for i := range 16 {
			targets = append(targets, sharding.Target{DB: "ds_" + strconv.Itoa(i/8), Table: name + "_" + strconv.Itoa(i)})
		}
		return inGroup(slots(t, name, "user_id", sharding.Low(4), targets...), "orders")
	}
	orders := withGene(block("orders"), sharding.Bits(12, 4))
	out, err := export.ShardingSphere(blocks(t, orders, block("items"), sharding.Broadcast("regions", "currencies")))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "shardingsphere", out)
}

// blocks is a router over ds_0 and ds_1.
func blocks(t *testing.T, options ...sharding.Option) *sharding.Router {
	t.Helper()
	r, err := sharding.New(sharding.DBs{"ds_0": new(sql.DB), "ds_1": new(sql.DB)}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestShardingSphereComputesWhatTheRouterDoes(t *testing.T) {
	named := func(db, table string) sharding.Target { return sharding.Target{DB: db, Table: table} }
	for name, table := range map[string]sharding.Table{
		"low":        spread(t, "t", "k", sharding.Low(10), 16),
		"mod":        spread(t, "t", "k", sharding.Mod(12), 6),
		"offset":     spread(t, "t", "k", sharding.OffsetStep(3, 5), 5),
		"bits":       spread(t, "t", "k", sharding.Bits(12, 4), 8),
		"odd names":  slots(t, "t", "k", sharding.Mod(4), named("west", "t_a"), named("east", "t_b"), named("east", "t_c"), named("west", "t_d")),
		"one table":  slots(t, "t", "k", sharding.Low(1), named("west", "t_1"), named("west", "t_1")),
		"runs":       slots(t, "t", "k", sharding.Mod(6), named("east", "t_1"), named("east", "t_1"), named("east", "t_2"), named("east", "t_2"), named("west", "t_3"), named("west", "t_3")),
		"from 1 on":  slots(t, "t", "k", sharding.Low(1), named("west", "t_1"), named("west", "t_2")),
		"any layout": slots(t, "t", "k", sharding.OffsetStep(2, 4), named("west", "t_0"), named("west", "t_1"), named("west", "t_0"), named("east", "t_2")),
	} {
		t.Run(name, func(t *testing.T) {
			r := router(t, table)
			out, err := export.ShardingSphere(r)
			if err != nil {
				t.Fatal(err)
			}
			expressions := regexp.MustCompile(`algorithm-expression: (.*)`).FindAllStringSubmatch(out.Files[0].Text, -1)
			for _, k := range keys() {
				got := groovy(t, expressions[0][1], k) + "/" + groovy(t, expressions[1][1], k)
				if want := target(t, r, k); got != want {
					t.Fatalf("key %d lies in %s, and in %s with %s", k, want, got, expressions)
				}
			}
		})
	}
}

var (
	quotedYAML = regexp.MustCompile(`^'(.*)'$`)
	listForm   = regexp.MustCompile(`\[('[^\]]*')\]\[`)
)

// groovy evaluates an inline expression as Groovy does: its operators are those of Java and Go.
func groovy(t *testing.T, text string, k int64) string {
	t.Helper()
	if quoted := quotedYAML.FindStringSubmatch(text); quoted != nil {
		text = strings.ReplaceAll(quoted[1], "''", "'")
	}
	before, code, found := strings.Cut(text, "${")
	if !found {
		return text
	}
	code = strings.TrimSuffix(code, "}")
	code = strings.ReplaceAll(code, "k as long", "k")
	code = strings.ReplaceAll(code, "'0'", `"0"`)
	code = listForm.ReplaceAllStringFunc(code, func(list string) string {
		return "[]string{" + strings.ReplaceAll(strings.Trim(list, "[]"), "'", `"`) + "}["
	})
	// Groovy, like Java, binds >> more tightly than &, and % more tightly than +. Go binds >>, &
	// and % equally, from left to right.
	e, err := parser.ParseExpr(code)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return before + fmt.Sprint(evaluate(t, e, k))
}

func evaluate(t *testing.T, e ast.Expr, k int64) any {
	t.Helper()
	switch e := e.(type) {
	case *ast.ParenExpr:
		return evaluate(t, e.X, k)
	case *ast.Ident:
		return big.NewInt(k)
	case *ast.BasicLit:
		if n, ok := new(big.Int).SetString(e.Value, 10); ok {
			return n
		}
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return operate(t, e.Op, evaluate(t, e.X, k).(*big.Int), evaluate(t, e.Y, k).(*big.Int))
	case *ast.IndexExpr:
		return evaluate(t, e.X.(*ast.CompositeLit).Elts[evaluate(t, e.Index, k).(*big.Int).Int64()], k)
	case *ast.CallExpr:
		return call(t, e, k)
	}
	t.Fatalf("%T", e)
	return nil
}

func operate(t *testing.T, op token.Token, x, y *big.Int) *big.Int {
	t.Helper()
	out := new(big.Int)
	switch op {
	case token.REM:
		return out.Rem(x, y)
	case token.ADD:
		return out.Add(x, y)
	case token.AND:
		return out.And(x, y)
	case token.SHR:
		return out.Rsh(x, uint(y.Int64()))
	}
	t.Fatalf("operator %v", op)
	return nil
}

func call(t *testing.T, e *ast.CallExpr, k int64) any {
	t.Helper()
	method := e.Fun.(*ast.SelectorExpr)
	on := evaluate(t, method.X, k)
	switch method.Sel.Name {
	case "intdiv":
		return new(big.Int).Quo(on.(*big.Int), evaluate(t, e.Args[0], k).(*big.Int))
	case "intValue":
		return on
	case "toString":
		return fmt.Sprint(on)
	case "padLeft":
		return fmt.Sprintf("%0*s", evaluate(t, e.Args[0], k).(*big.Int).Int64(), on)
	}
	t.Fatalf("method %s", method.Sel.Name)
	return nil
}

func TestShardingSphereRefusesWhatInlineCannotCompute(t *testing.T) {
	for says, rule := range map[string]sharding.Rule{
		"rule hash": sharding.Hash(4), "rule ranges": sharding.Ranges(1, 2, 3), "rule compat": sharding.Compat(4),
	} {
		_, err := export.ShardingSphere(router(t, spread(t, "t", "k", rule, 4)))
		refused(t, err, "t", says)
	}
	odd, err := sharding.New(sharding.DBs{"my db": new(sql.DB)},
		slots(t, "t", "k", sharding.Low(1), sharding.Target{DB: "my db", Table: "t_0"}, sharding.Target{DB: "my db", Table: "t_1"}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = export.ShardingSphere(odd)
	refused(t, err, "t", `"my db" is not allowed in an inline expression`)
}

// Binding tables whose rows only the slot in an id keeps together would be joined by ids whose
// slots ShardingSphere does not know.
func TestShardingSphereRefusesGroupsThatOnlyTheSlotInAnIDKeepsTogether(t *testing.T) {
	_, err := export.ShardingSphere(router(t,
		inGroup(withGene(spread(t, "orders", "user_id", sharding.Low(4), 4), sharding.Low(4)), "g"),
		inGroup(spread(t, "items", "order_id", sharding.Low(4), 4), "g")))
	refused(t, err, "items", "binding tables")
	if _, err := export.ShardingSphere(router(t,
		inGroup(spread(t, "orders", "id", sharding.Low(4), 4), "g"),
		inGroup(spread(t, "items", "order_id", sharding.Low(4), 4), "g"))); err != nil {
		t.Error(err)
	}
}

func TestYAMLNamesAreQuotedWhereTheyMeanSomethingElse(t *testing.T) {
	out, err := export.ShardingSphere(router(t, slots(t, "no", "on", sharding.Low(1), sharding.Target{DB: "east", Table: "no_0"}, sharding.Target{DB: "west", Table: "no_1"})))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"    'no':\n", "shardingColumn: 'on'\n"} {
		if !strings.Contains(out.Files[0].Text, want) {
			t.Errorf("no %q in\n%s", want, out.Files[0].Text)
		}
	}
}
