// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"reflect"
	"testing"

	"github.com/shardid/shardid/sharding/internal/proof"
)

func TestTheElementsOfAnArrayAreReadAsPostgreSQLReadsThem(t *testing.T) {
	for _, c := range []struct {
		array any
		want  []any
	}{
		{nil, nil},
		{[]int64(nil), nil},
		{[]int64{1, 2}, []any{int64(1), int64(2)}},
		{[][]byte{[]byte("a")}, []any{[]byte("a")}},
		{[][2]byte{{1, 2}}, []any{[2]byte{1, 2}}},
		{"{}", nil},
		{[]byte(" { } "), nil},
		{"{1,2}", []any{"1", "2"}},
		{"{1, 2\t,Null}", []any{"1", "2", nil}},
		{`{"a,\"b\\", "NULL" ,"" }`, []any{`a,"b\`, "NULL", ""}},
		{"{a b}", []any{"a b"}},
	} {
		if got, ok := proof.Elements(c.array); !ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.array, got, ok, c.want)
		}
	}
}

func TestAnArrayThatPostgreSQLRefusesOrOfSeveralDimensionsIsNotRead(t *testing.T) {
	for _, array := range []any{"", "1", "{", "{,}", "{1,}", "{1", `{"a`, `{"a\`, `{"a"b}`, `{a"b}`, "{{1},{2}}", "[0:1]={1,2}", "{1}2", 5, [2]int{1, 2}, [][]string{{"a"}}, [][2]int64{{1, 2}}} {
		if got, ok := proof.Elements(array); ok {
			t.Errorf("%v: %q", array, got)
		}
	}
}
