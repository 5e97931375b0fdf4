// SPDX-License-Identifier: Apache-2.0

package keygen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FriendlyConfig configures [Friendly].
type FriendlyConfig struct {
	// Layout is the layout of the ids. Its unit and its epoch must be whole milliseconds, and
	// it must have no bucket. It is required.
	Layout Layout

	// Zone is the time zone of the texts. NewFriendly refuses a zone whose clocks change during
	// the life of the layout, because two ids an hour apart could then have the same text.
	// Defaults to UTC.
	Zone *time.Location

	// Pad writes worker and sequence with leading zeros, so that the texts of ids whose highest
	// field is the time sort like the ids.
	Pad bool
}

// Friendly writes ids as time, worker id and sequence, for people who read them in logs or on
// the telephone. CosId's SnowflakeFriendlyIdConverter writes the same form:
// 20220320133617924-5-0 is an id made at 13:36:17.924 on 20 March 2022 by worker 5. Ids of
// layouts that count seconds have 14 digits of time. Friendly is immutable and safe for
// concurrent use.
//
// Each id of the layout has exactly one text, and Parse reads exactly the texts that Text
// writes.
type Friendly struct {
	cfg    FriendlyConfig
	worker int // number of digits; 0 writes no leading zeros
	seq    int
	stamp  string
}

const (
	secondsStamp = "20060102150405"
	millisStamp  = "20060102150405.000" // without the dot
)

// NewFriendly returns the text form. Its error names the setting that is wrong.
func NewFriendly(cfg FriendlyConfig) (*Friendly, error) {
	if cfg.Zone == nil {
		cfg.Zone = time.UTC
	}
	l := cfg.Layout
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("keygen: FriendlyConfig.Layout: %w", err)
	}
	switch {
	case l.Unit%time.Millisecond != 0 || !l.Epoch.Equal(l.Epoch.Truncate(time.Millisecond)):
		return nil, fmt.Errorf("%w: FriendlyConfig.Layout has units of %v since %v, but the text has only milliseconds", ErrLayout, l.Unit, l.Epoch.UTC())
	case l.Bits(Bucket) > 0:
		return nil, fmt.Errorf("%w: FriendlyConfig.Layout has a bucket, and the text has no field for it", ErrLayout)
	}
	if begin, end := l.Epoch.In(cfg.Zone).ZoneBounds(); !end.IsZero() && end.Before(l.Expires()) {
		return nil, fmt.Errorf("keygen: FriendlyConfig.Zone is %v, whose clocks change at %v (the offset before began at %v): ids that are an hour apart could have the same text; use time.UTC or time.FixedZone", cfg.Zone, end.UTC(), begin.UTC())
	}
	cfg.Layout.Fields = slices.Clone(l.Fields) // a later change by the caller must have no effect
	f := &Friendly{cfg: cfg, stamp: millisStamp}
	if l.Unit%time.Second == 0 && l.Epoch.Nanosecond() == 0 {
		f.stamp = secondsStamp
	}
	if cfg.Pad {
		f.worker = len(strconv.FormatInt(int64(1)<<l.WorkerBits()-1, 10))
		f.seq = len(strconv.FormatInt(l.max(Sequence), 10))
	}
	return f, nil
}

// Text returns the text of id. For an id below 1, or one made after the year 9999, the error
// wraps [ErrRange]; for an id that is not of the layout it wraps [ErrLayout].
func (f *Friendly) Text(id int64) (string, error) {
	if f == nil || f.stamp == "" {
		return "", errNotFriendly
	}
	if id < 1 {
		return "", fmt.Errorf("%w: %d is below 1, where ids start", ErrRange, id)
	}
	parts, err := f.cfg.Layout.Parse(id)
	if err != nil {
		return "", err
	}
	at := parts.Time.In(f.cfg.Zone)
	if at.Year() > 9999 {
		return "", fmt.Errorf("%w: %d was made in the year %d, which has more than four digits", ErrRange, id, at.Year())
	}
	worker := parts.Datacenter<<f.cfg.Layout.Bits(Worker) | parts.Worker
	stamp := strings.Replace(at.Format(f.stamp), ".", "", 1)
	return fmt.Sprintf("%s-%0*d-%0*d", stamp, f.worker, worker, f.seq, parts.Sequence), nil
}

var errNotFriendly = fmt.Errorf("%w: the Friendly was not made by NewFriendly", ErrLayout)

// Parse returns the id of a text that Text wrote. For any other text the error wraps
// [ErrSyntax].
func (f *Friendly) Parse(text string) (int64, error) {
	if f == nil || f.stamp == "" {
		return 0, errNotFriendly
	}
	id, err := f.parse(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrSyntax, clip(text), err)
	}
	if back, err := f.Text(id); err != nil || back != text {
		return 0, fmt.Errorf("%w: %s is not in the form that Text writes", ErrSyntax, clip(text))
	}
	return id, nil
}

func (f *Friendly) parse(text string) (int64, error) {
	fields := strings.Split(text, "-")
	digits := len(strings.Replace(f.stamp, ".", "", 1))
	if len(fields) != 3 || len(fields[0]) != digits {
		return 0, fmt.Errorf("the form is %d digits of time, a worker and a sequence, with dashes in between", digits)
	}
	stamp := fields[0]
	if f.stamp == millisStamp {
		stamp = stamp[:len(secondsStamp)] + "." + stamp[len(secondsStamp):]
	}
	at, err := time.ParseInLocation(f.stamp, stamp, f.cfg.Zone)
	if err != nil {
		return 0, err
	}
	worker, err := Decimal.Decode(fields[1])
	if err != nil {
		return 0, err
	}
	seq, err := Decimal.Decode(fields[2])
	if err != nil {
		return 0, err
	}
	if most := int64(1)<<f.cfg.Layout.WorkerBits() - 1; worker > most {
		return 0, fmt.Errorf("%w: worker %d is not between 0 and %d", ErrLayout, worker, most)
	}
	parts := Parts{Time: at, Sequence: seq}
	f.cfg.Layout.SplitWorker(&parts, worker)
	return f.cfg.Layout.Compose(parts)
}

// Generator returns a generator of the texts of g's ids, for models whose key is a text.
func (f *Friendly) Generator(g Generator[int64]) Generator[string] { return Map(g, f.Text) }
