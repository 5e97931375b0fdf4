// SPDX-License-Identifier: Apache-2.0

package command

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// SourceVariable names the variable with the database: a flag would show the password to
// all users of the machine.
const SourceVariable = "SHARDID_SOURCE"

// NoArgs refuses arguments and says what to give instead. An argument is often a database
// whose flag was left out.
func NoArgs(instead string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return input.Errorf("%s takes no arguments, and %q is one; %s", cmd.Name(), dialect.RedactDSN(args[0]), instead)
		}
		return nil
	}
}

// Known refuses unknown commands.
func Known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return input.Errorf("there is no command %q; give one of %s, or see %s --help", dialect.RedactDSN(args[0]), strings.Join(names, ", "), cmd.CommandPath())
}

var (
	unknownFlag      = regexp.MustCompile(`(?s)^unknown flag: --(.*)`)
	unknownShorthand = regexp.MustCompile(`(?s)^unknown shorthand flag: '(.*)' in .*`)
)

// FlagError shows only the letter of an unknown short flag: the rest may be a password, as
// in mysql's -p.
func FlagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		text = "unknown flag: --" + dialect.RedactDSN(m[1])
	} else if m := unknownShorthand.FindStringSubmatch(text); m != nil {
		text = "unknown flag: -" + m[1]
	}
	return input.Errorf("%s; see %s --help", text, cmd.CommandPath())
}
