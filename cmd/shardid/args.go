package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
)

// noArgs refuses arguments and says what to give instead. An argument is often a
// database whose flag was forgotten.
func noArgs(instead string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return input.Errorf("%s takes no arguments, and %q is one; %s", cmd.Name(), dialect.RedactDSN(args[0]), instead)
		}
		return nil
	}
}

// aCommand refuses what is no command of the program.
func aCommand(cmd *cobra.Command, args []string) error {
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

func someIDs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return input.Errorf("which ids? give one or more, as in shardid decode 1541815603606036480")
	}
	return nil
}

var (
	unknownFlag      = regexp.MustCompile(`(?s)^unknown flag: --(.*)`)
	unknownShorthand = regexp.MustCompile(`(?s)^unknown shorthand flag: '(.*)' in .*`)
)

// flagError shows no more than the letter of an unknown short flag: what follows
// it may be a password, as in mysql's -p.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		text = "unknown flag: --" + dialect.RedactDSN(m[1])
	} else if m := unknownShorthand.FindStringSubmatch(text); m != nil {
		text = "unknown flag: -" + m[1]
	}
	return input.Errorf("%s; see %s --help", text, cmd.CommandPath())
}
