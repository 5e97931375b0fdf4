// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/term"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// slots is the number of slots of the usual rule, Low(10).
const slots = 1024

// decoded is an id split into its fields.
type decoded struct {
	ID keygen.ID `json:"id"`
	keygen.Parts
	Slot int64 `json:"slot_1024"` // id modulo 1024
}

func newDecode() *cobra.Command {
	var flags layoutFlags
	var form string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "decode ID…",
		Short: "Split snowflake ids into time, worker, sequence",
		Long: `Decode prints when and by which worker an id was made. The layout defines the bits
of each field: one of ` + presetNames() + `, or your own from the
highest bit down, as in "time:41,worker:10,sequence:12", with --epoch and --unit.
The fields are time, datacenter, worker, sequence and bucket.`,
		Example: "  shardid decode 1541815603606036480\n  shardid decode --layout time:41,worker:10,sequence:12 --epoch 2024-01-01T00:00:00Z 123456789012",
		Args:    someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			layout, err := flags.layout()
			if err != nil {
				return err
			}
			all, err := decodeAll(layout, form, args)
			if err != nil {
				return err
			}
			if asJSON {
				return command.WriteJSON(cmd.OutOrStdout(), all)
			}
			return printDecoded(cmd.OutOrStdout(), layout, all)
		},
	}
	cmd.SetFlagErrorFunc(negativeID)
	flags.register(cmd)
	cmd.Flags().StringVar(&form, "form", "decimal", "how the ids are written: "+formNames())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, one object per id")
	return cmd
}

// forms are the ways of writing an id, ordered by the size of their digits.
var forms = []struct {
	name string
	*keygen.Encoding
}{
	{"decimal", keygen.Decimal},
	{"base2", keygen.Base2},
	{"base16", keygen.Base16},
	{"base36", keygen.Base36},
	{"base58", keygen.Base58},
	{"base62", keygen.Base62},
	{"crockford", keygen.Crockford},
}

func formNames() string {
	var names []string
	for _, f := range forms {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func decodeAll(layout keygen.Layout, form string, args []string) ([]decoded, error) {
	var encoding *keygen.Encoding
	for _, f := range forms {
		if f.name == form {
			encoding = f.Encoding
		}
	}
	if encoding == nil {
		return nil, input.Errorf("--form %q is unknown; give one of %s", dialect.RedactDSN(form), formNames())
	}
	all := make([]decoded, 0, len(args))
	for _, text := range args {
		d, err := decode(layout, encoding, form, text)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func decode(layout keygen.Layout, encoding *keygen.Encoding, form, text string) (decoded, error) {
	if minus.MatchString(text) {
		return decoded{}, errNegative(text)
	}
	id, err := encoding.Decode(text)
	if err != nil {
		return decoded{}, input.Errorf("%q is not an id in %s form; give digits of that form, at most %s in all, or choose another --form",
			dialect.RedactDSN(text), form, encoding.Encode(math.MaxInt64))
	}
	if id == 0 {
		return decoded{}, input.Errorf("0 is not an id: generators begin at 1")
	}
	parts, err := layout.Parse(id)
	if err != nil {
		return decoded{}, input.Errorf("%s was not made with this layout, which has %d bits; choose another --layout", text, width(layout))
	}
	return decoded{keygen.ID(id), parts, id % slots}, nil
}

func width(l keygen.Layout) int {
	bits := 0
	for _, f := range l.Fields {
		bits += f.Bits
	}
	return bits
}

var (
	minus        = regexp.MustCompile(`^-\d+$`)
	negativeFlag = regexp.MustCompile(`in (-\d+)$`)
)

func errNegative(text string) error {
	return input.Errorf("%s is negative, and ids never are; if it comes from an unsigned column read as signed, convert it first", text)
}

// negativeID detects a negative id that was parsed as a flag.
func negativeID(cmd *cobra.Command, err error) error {
	if m := negativeFlag.FindStringSubmatch(err.Error()); m != nil {
		return errNegative(m[1])
	}
	return command.FlagError(cmd, err)
}

func printDecoded(w io.Writer, layout keygen.Layout, all []decoded) error {
	headings := []string{">ID", "TIME (UTC)"}
	kinds := []keygen.Kind{keygen.Datacenter, keygen.Worker, keygen.Sequence, keygen.Bucket}
	for _, k := range kinds {
		if layout.Bits(k) > 0 {
			headings = append(headings, ">"+upper(k))
		}
	}
	t := term.NewTable(term.StyleFor(w), append(headings, fmt.Sprintf(">ID %% %d", slots))...)
	for _, d := range all {
		row := []string{d.ID.String(), d.Time.UTC().Format(timeFormat(layout.Unit))}
		for _, k := range kinds {
			if layout.Bits(k) > 0 {
				row = append(row, strconv.FormatInt(d.part(k), 10))
			}
		}
		t.Row(append(row, strconv.FormatInt(d.Slot, 10))...)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func (d decoded) part(k keygen.Kind) int64 {
	switch k {
	case keygen.Datacenter:
		return d.Datacenter
	case keygen.Worker:
		return d.Worker
	case keygen.Sequence:
		return d.Sequence
	case keygen.Bucket:
		return d.Bucket
	}
	panic("bug: " + k.String() + " is not a number")
}

// timeFormat shows as many digits of a second as a tick needs.
func timeFormat(unit time.Duration) string {
	switch {
	case unit%time.Second == 0:
		return "2006-01-02 15:04:05"
	case unit%time.Millisecond == 0:
		return "2006-01-02 15:04:05.000"
	}
	return "2006-01-02 15:04:05.000000000"
}

func someIDs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return input.Errorf("which ids? give one or more, as in shardid decode 1541815603606036480")
	}
	return nil
}
