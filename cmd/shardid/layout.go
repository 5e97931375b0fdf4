package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/keygen"
)

// layoutFlags describe a layout on the command line.
type layoutFlags struct {
	spec  string
	epoch string
	unit  time.Duration
}

func (f *layoutFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.spec, "layout", "twitter", "name of a layout, or its fields and their bits")
	cmd.Flags().StringVar(&f.epoch, "epoch", "", "time 0 of the layout, as 2024-01-01T00:00:00Z or Unix milliseconds (default the named layout's)")
	cmd.Flags().DurationVar(&f.unit, "unit", 0, "length of a tick (default the named layout's, or 1ms)")
}

func presetNames() string {
	return strings.Join(slices.Sorted(maps.Keys(keygen.Presets())), ", ")
}

// layout returns a named layout or a custom one. Epoch and unit also change
// those of a named one: many systems took over its fields only.
func (f *layoutFlags) layout() (keygen.Layout, error) {
	l, named := keygen.Presets()[f.spec]
	if !named {
		fields, err := parseFields(f.spec)
		if err != nil {
			return l, err
		}
		if f.epoch == "" {
			return l, input.Errorf("--layout %s needs --epoch, the time at which its time field was 0", f.spec)
		}
		l = keygen.Layout{Unit: time.Millisecond, Fields: fields}
	}
	if f.epoch != "" {
		epoch, err := parseEpoch(f.epoch)
		if err != nil {
			return l, err
		}
		l.Epoch = epoch
	}
	if f.unit != 0 {
		l.Unit = f.unit
	}
	if err := l.Validate(); err != nil {
		return l, input.Errorf("this layout cannot be: %w", err)
	}
	return l, nil
}

func parseFields(spec string) ([]keygen.Field, error) {
	if !strings.Contains(spec, ":") {
		return nil, input.Errorf("--layout %q is unknown; give one of %s, or fields like time:41,worker:10,sequence:12", spec, presetNames())
	}
	kinds := map[string]keygen.Kind{}
	for k := keygen.Time; k <= keygen.Bucket; k++ {
		kinds[k.String()] = k
	}
	var fields []keygen.Field
	for part := range strings.SplitSeq(spec, ",") {
		name, width, _ := strings.Cut(part, ":")
		kind, known := kinds[strings.ToLower(strings.TrimSpace(name))]
		bits, err := strconv.Atoi(strings.TrimSpace(width))
		if !known || err != nil {
			return nil, input.Errorf("--layout: %q is not a field and its bits; write it as in time:41,worker:10,sequence:12 (time, datacenter, worker, sequence, bucket)", part)
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
		return epoch, input.Errorf("--epoch %q is not a time; write it as 2024-01-01T00:00:00Z or as Unix milliseconds", text)
	}
	return epoch, nil
}

func upper(k keygen.Kind) string { return strings.ToUpper(k.String()) }
