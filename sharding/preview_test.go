// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardid/shardid/sharding"
)

func TestAPreviewIsBounded(t *testing.T) {
	var p sharding.Preview
	add := func(text string) {
		if p.Count(text) {
			p.Add(text, sharding.SeveralShards, nil)
		}
	}
	for range 2 {
		for n := range 1200 {
			add(fmt.Sprintf("SELECT a%d FROM orders", n))
		}
	}
	add(strings.Repeat("x", 5000))
	found := p.Statements()
	if len(found) != 1000 || p.Omitted() != 401 {
		t.Errorf("%d are kept, %d are not", len(found), p.Omitted())
	}
	for _, s := range found {
		if s.Times != 2 {
			t.Fatalf("%+v", s)
		}
	}
}

func TestAStatementThatAPreviewKnowsIsSeldomPlanned(t *testing.T) {
	var p sharding.Preview
	for text, want := range map[string]struct {
		change sharding.Change
		times  int
	}{
		"SELECT 1": {sharding.Unchanged, 5000}, // nothing is kept of it
		"SELECT 2": {sharding.SeveralShards, 1 + 63 + 4},
		"SELECT 3": {sharding.WillBeRefused, 1},
	} {
		planned := 0
		for range 5000 {
			if p.Count(text) {
				planned++
				p.Add(text, want.change, nil)
			}
		}
		if planned != want.times {
			t.Errorf("%s is planned %d times, want %d", text, planned, want.times)
		}
	}
}

func TestAPreviewListsTheWorstFirst(t *testing.T) {
	cause := errors.New("no key")
	var told []string
	p := sharding.Preview{Notify: func(s sharding.Previewed) { told = append(told, s.Text+": "+s.Change.String()) }}
	for _, s := range []sharding.Previewed{
		{Text: "a", Change: sharding.SeveralShards}, {Text: "b", Change: sharding.SeveralShards}, {Text: "b", Change: sharding.SeveralShards},
		{Text: "c", Change: sharding.WillBeRefused, Err: cause}, {Text: "d", Change: sharding.LooksFirst}, {Text: "d", Change: sharding.SeveralShards}, {Text: "a", Change: sharding.LooksFirst},
	} {
		if p.Count(s.Text) {
			p.Add(s.Text, s.Change, s.Err)
		}
	}
	var got []string
	for _, s := range p.Statements() {
		got = append(got, fmt.Sprint(s.Text, s.Times, " ", s.Change, " ", s.Err))
	}
	want := []string{"c1 refused no key", "a2 other shards are asked first <nil>", "d2 other shards are asked first <nil>", "b2 several shards <nil>"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if want := "[a: several shards b: several shards c: refused d: other shards are asked first a: other shards are asked first]"; fmt.Sprint(told) != want {
		t.Errorf("%v\nwant %v", told, want)
	}
	if s := sharding.Change(7).String(); s != "unknown" {
		t.Error(s)
	}
}
