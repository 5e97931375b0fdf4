// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Write writes a page of section 1 into dir for the command and each of its subcommands:
// shardid-migrate-run.1 for "shardid migrate run".
func Write(dir string, cmd *cobra.Command) error {
	var page strings.Builder
	writePage(&page, cmd)
	//nolint:gosec // everybody may read a manual
	if err := os.WriteFile(filepath.Join(dir, name(cmd)+".1"), []byte(page.String()), 0o644); err != nil {
		return err
	}
	for _, child := range cmd.Commands() {
		if !child.IsAvailableCommand() {
			continue
		}
		if err := Write(dir, child); err != nil {
			return err
		}
	}
	return nil
}

// writePage writes the page of one command.
func writePage(w *strings.Builder, cmd *cobra.Command) {
	p := page{w}
	p.printf(".TH %q 1 \"\" %q\n", strings.ToUpper(name(cmd)), cmd.Root().Name()+" "+cmd.Root().Version)
	p.section("NAME")
	p.printf("%s \\- %s\n", escape(name(cmd)), escape(cmd.Short))
	p.section("SYNOPSIS")
	p.printf("\\fB%s\\fR\n", escape(cmd.UseLine()))
	p.section("DESCRIPTION")
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	p.asItIs(text)
	p.options("OPTIONS", cmd.NonInheritedFlags())
	p.options("OPTIONS OF ALL COMMANDS ABOVE", cmd.InheritedFlags())
	if cmd.Example != "" {
		p.section("EXAMPLES")
		p.asItIs(cmd.Example)
	}
	p.seeAlso(cmd)
}

// page is the page that is being written.
type page struct{ w *strings.Builder }

func (p page) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p page) section(title string) { p.printf(".SH %s\n", title) }

// asItIs keeps the line breaks of a text, as many texts are tables.
func (p page) asItIs(text string) {
	p.printf(".nf\n%s\n.fi\n", escape(strings.TrimRight(text, "\n")))
}

func (p page) options(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.section(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		option := "--" + f.Name
		if f.Shorthand != "" {
			option = "-" + f.Shorthand + ", " + option
		}
		p.printf(".TP\n\\fB%s\\fR %s\n%s\n", escape(option), escape(kind), escape(usage))
	})
}

func (p page) seeAlso(cmd *cobra.Command) {
	var others []string
	if cmd.HasParent() {
		others = append(others, name(cmd.Parent()))
	}
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			others = append(others, name(child))
		}
	}
	if len(others) == 0 {
		return
	}
	p.section("SEE ALSO")
	for i, other := range others {
		end := ","
		if i == len(others)-1 {
			end = ""
		}
		p.printf(".BR %s (1)%s\n", escape(other), end)
	}
}

func name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// escape makes roff print a text unchanged: a line must not begin with a dot or an
// apostrophe, which begin requests; - would become a hyphen; and not every roff reads more
// than ASCII.
func escape(text string) string {
	var b strings.Builder
	for _, r := range strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace("\n" + text)[1:] {
		if r > unicode.MaxASCII {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
