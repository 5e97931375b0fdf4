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
	// Layout is that of the ids. Its unit and its epoch are of whole milliseconds, and it
	// has no bucket. It is required.
	Layout Layout

	// Zone is that of the times. One whose clocks change during the life of the layout is
	// refused, as an hour would come twice there. Defaults to UTC.
	Zone *time.Location

	// Pad writes worker and sequence with leading zeros, so that the texts of ids with
	// time on top sort like the ids.
	Pad bool
}

// Friendly writes ids as time, worker id and sequence, for people who read them in logs
// and on the telephone: 20220320133617924-5-0 is CosId's SnowflakeFriendlyIdConverter of
// an id made at 13:36:17.924 on 20 March 2022 by worker 5. Ids of layouts that count
// seconds have 14 digits of time. It is immutable and safe for concurrent use.
//
// Each id of the layout has one text, and Parse takes exactly what Text writes.
type Friendly struct {
	cfg    FriendlyConfig
	worker int // digits, 0 for as many as it has
	seq    int
	stamp  string
}

const (
	secondsStamp = "20060102150405"
	millisStamp  = "20060102150405.000" // without the dot
)

// NewFriendly returns the form, or an error that names the setting that is wrong.
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
		return nil, fmt.Errorf("%w: FriendlyConfig.Layout has units of %v since %v, and the text has milliseconds", ErrLayout, l.Unit, l.Epoch.UTC())
	case l.Bits(Bucket) > 0:
		return nil, fmt.Errorf("%w: FriendlyConfig.Layout has a bucket, for which the text has no place", ErrLayout)
	}
	if begin, end := l.Epoch.In(cfg.Zone).ZoneBounds(); !end.IsZero() && end.Before(l.Expires()) {
		return nil, fmt.Errorf("keygen: FriendlyConfig.Zone is %v, whose clocks change at %v (the offset before began at %v): ids of an hour could have the texts of another; take time.UTC or time.FixedZone", cfg.Zone, end.UTC(), begin.UTC())
	}
	cfg.Layout.Fields = slices.Clone(l.Fields) // the caller may change his
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

// Text returns the text of id. An id below 1 is an error that wraps [ErrRange], and so is
// one made after the year 9999; one that is not of the layout wraps [ErrLayout].
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
		return "", fmt.Errorf("%w: %d was made in the year %d, for which the text has no room", ErrRange, id, at.Year())
	}
	worker := parts.Datacenter<<f.cfg.Layout.Bits(Worker) | parts.Worker
	stamp := strings.Replace(at.Format(f.stamp), ".", "", 1)
	return fmt.Sprintf("%s-%0*d-%0*d", stamp, f.worker, worker, f.seq, parts.Sequence), nil
}

var errNotFriendly = fmt.Errorf("%w: the Friendly was not made by NewFriendly", ErrLayout)

// Parse returns the id of a text that Text wrote. Anything else is an error that wraps
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
		return 0, fmt.Errorf("%w: %s is not as Text writes it", ErrSyntax, clip(text))
	}
	return id, nil
}

func (f *Friendly) parse(text string) (int64, error) {
	fields := strings.Split(text, "-")
	digits := len(strings.Replace(f.stamp, ".", "", 1))
	if len(fields) != 3 || len(fields[0]) != digits {
		return 0, fmt.Errorf("it is not %d digits of time, a worker and a sequence, with dashes between", digits)
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
