// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/keygen"
)

// layoutFlags describe a layout on the command line.
type layoutFlags struct {
	spec  string
	epoch string
	unit  time.Duration
	given func(flag string) bool
}

func (f *layoutFlags) register(cmd *cobra.Command) {
	f.given = cmd.Flags().Changed
	cmd.Flags().StringVar(&f.spec, "layout", "twitter", "name of a layout, or its fields and their bits")
	cmd.Flags().StringVar(&f.epoch, "epoch", "", "time 0 of the layout, as 2024-01-01T00:00:00Z or Unix milliseconds (default the named layout's)")
	cmd.Flags().Var(input.Between(1, time.Hour, &f.unit), "unit", "length of a tick (default the named layout's, or 1ms)")
}

func presetNames() string {
	return strings.Join(slices.Sorted(maps.Keys(keygen.Presets())), ", ")
}

// layout returns a named layout or a custom one. Epoch and unit also change a named one,
// because many systems have copied only its fields.
func (f *layoutFlags) layout() (keygen.Layout, error) {
	l, named := keygen.Presets()[f.spec]
	if !named {
		fields, err := parseFields(f.spec)
		if err != nil {
			return l, err
		}
		// This epoch is replaced after the fields are checked.
		l = keygen.Layout{Epoch: time.UnixMilli(0), Unit: time.Millisecond, Fields: fields}
	}
	if f.given("unit") {
		l.Unit = f.unit
	}
	if err := l.Validate(); err != nil {
		return l, input.Errorf("--layout: %w", err)
	}
	switch {
	case f.given("epoch"):
		epoch, err := parseEpoch(f.epoch)
		if err != nil {
			return l, err
		}
		l.Epoch = epoch
	case !named:
		return l, input.Errorf("--layout %s needs --epoch, the time at which its time field was 0", f.spec)
	}
	if err := l.Validate(); err != nil {
		return l, input.Errorf("--epoch is not possible: %w", err)
	}
	return l, nil
}

func parseFields(spec string) ([]keygen.Field, error) {
	if !strings.Contains(spec, ":") {
		return nil, input.Errorf("--layout %q is unknown; give one of %s, or fields like time:41,worker:10,sequence:12", dialect.RedactDSN(spec), presetNames())
	}
	kinds := map[string]keygen.Kind{}
	for k := keygen.Time; k <= keygen.Bucket; k++ {
		kinds[k.String()] = k
	}
	var fields []keygen.Field
	for part := range strings.SplitSeq(spec, ",") {
		name, width, _ := strings.Cut(part, ":")
		kind, known := kinds[strings.ToLower(strings.TrimSpace(name))]
		if !known { // the text after the name may be a password
			return nil, input.Errorf("--layout: %q is not a field; write fields and their bits as in time:41,worker:10,sequence:12 (time, datacenter, worker, sequence, bucket)", dialect.RedactDSN(name))
		}
		bits, err := strconv.Atoi(strings.TrimSpace(width))
		if err != nil {
			return nil, input.Errorf("--layout: %v needs a number of bits, as in time:41,worker:10,sequence:12", kind)
		}
		fields = append(fields, keygen.Field{Kind: kind, Bits: bits})
	}
	return fields, nil
}

func parseEpoch(text string) (time.Time, error) {
	if millis, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(millis).UTC(), nil
	}
	epoch, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return epoch, input.Errorf("--epoch %q is not a time; write it as 2024-01-01T00:00:00Z or as Unix milliseconds", shownTime(text))
	}
	return epoch, nil
}

// shownTime redacts a text unless it is a time, because the colons of a time look like
// those before a password.
func shownTime(text string) string {
	if strings.Trim(text, "0123456789-+.:TtZz ") == "" {
		return text
	}
	return dialect.RedactDSN(text)
}

func upper(k keygen.Kind) string { return strings.ToUpper(k.String()) }
