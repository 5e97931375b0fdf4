// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// boundless are the numbers that may be as large as an integer can be: they count ids and
// rows, or name one.
var boundless = []string{
	"audit --rows", "ddl adopt --to", "ddl plan --to", "ddl up --to", "ddl resolve --version", "doctor --rows", "migrate expand --margin", "migrate seed --margin",
}

// numbers calls f with each flag of each command that takes a number or a duration.
func numbers(cmd *cobra.Command, f func(name string, flag *pflag.Flag)) {
	path := strings.TrimPrefix(cmd.CommandPath(), "shardid ")
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if kind := flag.Value.Type(); kind != "string" && kind != "bool" && kind != "stringSlice" {
			f(path+" --"+flag.Name, flag)
		}
	})
	for _, child := range cmd.Commands() {
		numbers(child, f)
	}
}

func TestNoFlagTakesANumberWithoutSense(t *testing.T) {
	found, unlimited := 0, []string{}
	numbers((&program{}).newRoot(), func(name string, flag *pflag.Flag) {
		found++
		senseless, large := []string{"-5", "soon", "", "1.5", "99999999999999999999"}, "9000000000000000000"
		if flag.Value.Type() == "duration" {
			senseless, large = []string{"-5s", "5", "soon", "", "99999999h"}, "2000000h"
		}
		for _, text := range senseless {
			if err := flag.Value.Set(text); err == nil {
				t.Errorf("%s takes %q", name, text)
			}
		}
		if flag.Value.Set(large) == nil {
			unlimited = append(unlimited, name)
		}
	})
	slices.Sort(unlimited)
	want := slices.Sorted(slices.Values(boundless))
	if !slices.Equal(unlimited, want) {
		t.Errorf("these take a number as large as %v, and only %v are said to", unlimited, want)
	}
	if found < 25 {
		t.Errorf("the commands have %d such flags; are all commands looked at?", found)
	}
}
