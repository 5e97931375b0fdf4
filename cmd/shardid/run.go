// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/cmd/shardid/internal/migration"
	"github.com/shardid/shardid/cmd/shardid/internal/route"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
)

const long = `shardid helps a table that has outgrown AUTO_INCREMENT to become many tables.

Data goes to stdout, everything else to stderr. NO_COLOR turns colours off.
`

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return (&program{}).run(ctx, args, stdout, stderr)
}

// program is one execution.
type program struct {
	parsed      bool // the command line was parsed
	beforeCheck func(context.Context, *sharding.Router) error
}

func (p *program) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stderr = &layoutfile.MaskedWriter{Writer: stderr, Mask: layoutfile.NewMask(append([]string{os.Getenv(command.SourceVariable)}, args...))}
	root := p.newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := p.exitCode(ctx, err)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "shardid: "+p.message(err, code)) // an error of stderr cannot be reported
	}
	return code
}

// exitCode treats an error before a command has begun as a mistake in its flags.
func (p *program) exitCode(ctx context.Context, err error) int {
	own, given := command.CodeOf(err)
	switch {
	case err == nil:
		return command.ExitOK
	case given:
		return own
	case errors.Is(err, errUnclean), errors.Is(err, errUnhealthy), errors.Is(err, errUneven), errors.Is(err, errBlocked), errors.Is(err, errBehind), errors.Is(err, errGone), errors.Is(err, errDrift), errors.Is(err, errMoving):
		return command.ExitUnclean
	case ctx.Err() != nil:
		return command.ExitInterrupted
	case !p.parsed || input.Caused(err) || dialect.FaultOf(err) == dialect.NoRight:
		return command.ExitInput
	}
	return command.ExitFailure
}

// message is the error in one line.
func (p *program) message(err error, code int) string {
	text := strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", "; ").Replace(err.Error())
	text = strings.ReplaceAll(text, ": migrate: ", ": ") // causes repeat this
	_, given := command.CodeOf(err)
	switch {
	case code == command.ExitInterrupted && !given:
		return "interrupted"
	case !p.parsed && !input.Caused(err):
		return text + "; see shardid --help"
	}
	return text
}

func (p *program) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:               "shardid",
		Short:             "Shard a table that has outgrown AUTO_INCREMENT",
		Long:              long + "\n" + command.ExitHelp(),
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              command.Known,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error { p.parsed = true; return nil },
	}
	root.SetFlagErrorFunc(command.FlagError)
	root.SetVersionTemplate("shardid {{.Version}}\n")
	root.AddCommand(p.newDemo(), newInspect(), newDecode(), newSchema(), newExport(), newDoctor(), newAudit(), route.New(), newServe(), newLookup(), newDDL(), newRebalance(), migration.New(), newManual())
	return root
}

// version is the version of the module. A program built from a directory has the commit, if
// the go command has found one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	if info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = " of " + s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " with changes"
		}
	}
	return "development version" + revision + changed + ", built with " + info.GoVersion
}
