// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
)

// The vectors are fixed, because ids that are stored in databases must keep their meaning
// forever.
func TestPresetsKeepTheirMeaning(t *testing.T) {
	at := func(s string) time.Time {
		tm, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return tm.UTC()
	}
	for _, v := range []struct {
		layout string
		id     int64
		parts  keygen.Parts
	}{
		// UidGenerator's published example: 2019-05-02 23:26:39 +08:00, worker 21, sequence 1.
		{"baidu", 3200169789968523265, keygen.Parts{Time: at("2019-05-02T15:26:39Z"), Worker: 21, Sequence: 1}},
		{"baidu", math.MaxInt64, keygen.Parts{Time: at("2024-11-20T13:24:15Z"), Worker: 1<<22 - 1, Sequence: 8191}},
		{"twitter", 1541815603606036480, keygen.Parts{Time: at("2022-06-28T16:07:40.105Z"), Datacenter: 11, Worker: 26}},
		{"twitter", 1, keygen.Parts{Time: at("2010-11-04T01:42:54.657Z"), Sequence: 1}},
		{"sonyflake", 1<<24 | 3<<16 | 258, keygen.Parts{Time: at("2014-09-01T00:00:00.01Z"), Sequence: 3, Worker: 258}},
		{"instagram", 1387263000<<23 | 1341<<10 | 905, keygen.Parts{Time: at("2011-09-09T22:28:04.721Z"), Worker: 1341, Sequence: 905}},
		{"disposable", 86400<<34 | 77<<13 | 5, keygen.Parts{Time: at("2026-01-02T00:00:00Z"), Worker: 77, Sequence: 5}},
		{"jssafe", 1<<53 - 1, keygen.Parts{Time: at("2093-09-06T15:47:35.551Z"), Worker: 31, Sequence: 127}},
		// CosId's own test has the id of 2022-03-20 13:36:17.924 +08:00; what the others mean
		// its source says (TestTextsAreCosIDs).
		{"cosid", 295913926632165376, keygen.Parts{Time: at("2022-03-20T05:36:17.924Z"), Worker: 5}},
		{"cosid", 782516197785753600, keygen.Parts{Time: at("2025-11-22T00:00:00Z"), Worker: 37, Sequence: 2048}},
		{"cosid-second", 801296590730952703, keygen.Parts{Time: at("2025-11-22T00:00:00Z"), Worker: 1000, Sequence: 4194303}},
		{"cosid-second", math.MaxInt64, keygen.Parts{Time: at("2088-01-11T19:14:07Z"), Worker: 1023, Sequence: 4194303}},
	} {
		l := keygen.Presets()[v.layout]
		got, err := l.Parse(v.id)
		if err != nil || got != v.parts {
			t.Errorf("%s %d:\n got %+v, %v\nwant %+v", v.layout, v.id, got, err, v.parts)
		}
		if id, err := l.Compose(v.parts); err != nil || id != v.id {
			t.Errorf("%s: composed %d, %v; want %d", v.layout, id, err, v.id)
		}
	}
}

func TestPresetsExpireWhenTheirCommentsSay(t *testing.T) {
	for name, want := range map[string]string{
		"twitter": "2080-07-10", "baidu": "2024-11-20", "sonyflake": "2188-11-16", "instagram": "2046-06-27", "jssafe": "2093-09-06", "disposable": "2043-01-05",
		"sonyflake2": "2199-03-19", "cosid": "2089-08-30", "cosid-second": "2088-01-11",
	} {
		l := keygen.Presets()[name]
		if err := l.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := l.Expires().Format(time.DateOnly); got != want {
			t.Errorf("%s expires on %s, want %s", name, got, want)
		}
	}
	c := keygen.JSSafe().Capacity()
	if c.Workers != 32 || c.PerTick != 128 || c.PerSecond != 128_000 {
		t.Errorf("jssafe: %+v", c)
	}
}

func TestComposeAndParseAreInverse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		l := randomLayout(r)
		if err := l.Validate(); err != nil {
			t.Fatal(err)
		}
		id := r.Int64()
		for w := width(l); id>>w != 0; {
			id >>= 1
		}
		parts, err := l.Parse(id)
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		if again, err := l.Compose(parts); err != nil || again != id {
			t.Fatalf("%+v: %d became %+v became %d, %v", l, id, parts, again, err)
		}
	}
}

func randomLayout(r *rand.Rand) keygen.Layout {
	units := []time.Duration{time.Second, time.Millisecond, 10 * time.Millisecond, time.Microsecond, 7 * time.Nanosecond, time.Hour}
	l := keygen.Layout{Epoch: time.Unix(r.Int64N(2e9), r.Int64N(1e9)), Unit: units[r.IntN(len(units))]}
	rest := 63
	for i, k := range r.Perm(4) {
		n := 1 + r.IntN(rest-(3-i))
		if keygen.Kind(k+1) == keygen.Time {
			n = min(n, 45)
		}
		l.Fields = append(l.Fields, keygen.Field{Kind: keygen.Kind(k + 1), Bits: n})
		rest -= n
	}
	return l
}

func width(l keygen.Layout) (sum int) {
	for _, f := range l.Fields {
		sum += f.Bits
	}
	return sum
}

func TestAPartThatDoesNotFitItsFieldIsRefused(t *testing.T) {
	l := keygen.Twitter()
	good := keygen.Parts{Time: l.Epoch}
	for name, change := range map[string]func(*keygen.Parts){
		"sequence":     func(p *keygen.Parts) { p.Sequence = 4096 },
		"negative":     func(p *keygen.Parts) { p.Worker = -1 },
		"worker":       func(p *keygen.Parts) { p.Worker = 32 },
		"no such":      func(p *keygen.Parts) { p.Bucket = 1 },
		"before epoch": func(p *keygen.Parts) { p.Time = l.Epoch.Add(-1) },
		"expired":      func(p *keygen.Parts) { p.Time = l.Expires() },
	} {
		p := good
		change(&p)
		if id, err := l.Compose(p); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%s: %d, %v", name, id, err)
		}
	}
}

func TestAnIDOfAnotherLayoutIsRefused(t *testing.T) {
	if _, err := keygen.Twitter().Parse(-1); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("negative: %v", err)
	}
	if _, err := keygen.JSSafe().Parse(1 << 53); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("too wide: %v", err)
	}
}

func TestAnImpossibleLayoutIsRefused(t *testing.T) {
	f := func(kindsAndBits ...int) (fields []keygen.Field) {
		for i := 0; i < len(kindsAndBits); i += 2 {
			fields = append(fields, keygen.Field{Kind: keygen.Kind(kindsAndBits[i]), Bits: kindsAndBits[i+1]})
		}
		return fields
	}
	now := time.Unix(1.7e9, 0)
	for name, l := range map[string]keygen.Layout{
		"zero":              {},
		"no unit":           {Epoch: now, Fields: f(1, 41, 3, 10, 4, 12)},
		"no epoch":          {Unit: 1, Fields: f(1, 41, 3, 10, 4, 12)},
		"64 bits":           {Unit: 1, Epoch: now, Fields: f(1, 42, 3, 10, 4, 12)},
		"two workers":       {Unit: 1, Epoch: now, Fields: f(1, 41, 3, 5, 3, 5, 4, 12)},
		"no sequence":       {Unit: 1, Epoch: now, Fields: f(1, 41, 3, 10)},
		"no time":           {Unit: 1, Epoch: now, Fields: f(4, 41, 3, 10)},
		"an empty field":    {Unit: 1, Epoch: now, Fields: f(1, 41, 3, 0, 4, 12)},
		"a negative field":  {Unit: 1, Epoch: now, Fields: f(1, 41, 3, -3, 4, 12)},
		"an unknown kind":   {Unit: 1, Epoch: now, Fields: f(1, 41, 9, 3, 4, 12)},
		"bucket not lowest": {Unit: 1, Epoch: now, Fields: f(1, 41, 5, 3, 4, 12)},
	} {
		if err := l.Validate(); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABucketTakesItsBitsFromTheSequence(t *testing.T) {
	plain := keygen.Sonyflake()
	with := plain.WithBucket(3)
	if err := with.Validate(); err != nil {
		t.Fatal(err)
	}
	if with.Bits(keygen.Bucket) != 3 || with.Bits(keygen.Sequence) != plain.Bits(keygen.Sequence)-3 || with.Shift(keygen.Bucket) != 0 {
		t.Errorf("%+v", with.Fields)
	}
	if with.Expires() != plain.Expires() || plain.Bits(keygen.Bucket) != 0 {
		t.Errorf("the layout it is made from has become %+v", plain.Fields)
	}
	for name, wrong := range map[string]keygen.Layout{
		"no sequence left": keygen.Twitter().WithBucket(12),
		"a second bucket":  keygen.Twitter().WithBucket(3).WithBucket(3),
		"no bits":          keygen.Twitter().WithBucket(0),
		"fewer than none":  keygen.Twitter().WithBucket(-3),
	} {
		if err := wrong.Validate(); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRangeHoldsExactlyTheIDsOfThePeriod(t *testing.T) {
	l := keygen.Twitter()
	from := l.Epoch.Add(10 * time.Millisecond)
	lo, hi, err := l.Range(from, from.Add(3*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	if lo != 10<<22 || hi != 13<<22-1 {
		t.Errorf("got %d to %d", lo, hi)
	}
	// A period that begins inside a tick holds the ticks that start in it.
	lo, hi, err = l.Range(from.Add(1), from.Add(2*time.Millisecond+1))
	if err != nil || lo != 11<<22 || hi != 13<<22-1 {
		t.Errorf("got %d to %d, %v", lo, hi, err)
	}
	if _, _, err := l.Range(from, from); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("an empty period: %v", err)
	}
	if _, hi, err = l.Range(from, l.Expires().AddDate(100, 0, 0)); err != nil || hi != math.MaxInt64 {
		t.Errorf("a period beyond the end reaches %d, %v", hi, err)
	}
	worker := keygen.Layout{Epoch: l.Epoch, Unit: 1, Fields: []keygen.Field{{Kind: keygen.Worker, Bits: 4}, {Kind: keygen.Time, Bits: 41}, {Kind: keygen.Sequence, Bits: 4}}}
	if _, _, err := worker.Range(from, from.Add(1)); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("time is not highest: %v", err)
	}
}

func TestTickAndAtSurviveAnyTime(t *testing.T) {
	l := keygen.Twitter()
	for _, tick := range []int64{0, 1, -1, 1 << 41, math.MaxInt64, math.MinInt64} {
		at := l.At(tick)
		if abs := tick; abs < 1<<45 && abs > -1<<45 && l.Tick(at) != tick {
			t.Errorf("tick %d is at %v, which is tick %d", tick, at, l.Tick(at))
		}
	}
	if got := l.Tick(time.Unix(1<<60, 0)); got != math.MaxInt64 {
		t.Errorf("the far future is tick %d", got)
	}
	if got := l.Tick(l.Epoch.Add(-1)); got != -1 {
		t.Errorf("just before the epoch is tick %d", got)
	}
}

func TestWorkerIDsSplitIntoDatacenterAndWorker(t *testing.T) {
	var p keygen.Parts
	keygen.Twitter().SplitWorker(&p, 21<<5|7)
	if p.Datacenter != 21 || p.Worker != 7 || keygen.Twitter().WorkerBits() != 10 {
		t.Errorf("%+v", p)
	}
}

// Ledgers store these texts in their tables forever.
func TestFingerprintsKeepTheirText(t *testing.T) {
	epoch := time.Date(2026, 1, 1, 8, 0, 0, 1500, time.FixedZone("CST", 8*3600))
	f := func(kindsAndBits ...int) (all []keygen.Field) {
		for i := 0; i < len(kindsAndBits); i += 2 {
			all = append(all, keygen.Field{Kind: keygen.Kind(kindsAndBits[i]), Bits: kindsAndBits[i+1]})
		}
		return all
	}
	const t0, dc, worker, seq, bucket = int(keygen.Time), int(keygen.Datacenter), int(keygen.Worker), int(keygen.Sequence), int(keygen.Bucket)
	for want, l := range map[string]keygen.Layout{
		"time:41 worker:10 sequence:12 unit:1ms epoch:2010-11-04T01:42:54.657Z":                  keygen.Twitter(),
		"time:28 worker:22 sequence:13 unit:1s epoch:2016-05-19T16:00:00Z":                       keygen.Baidu(),
		"time:39 sequence:8 worker:16 unit:10ms epoch:2014-09-01T00:00:00Z":                      keygen.Sonyflake(),
		"time:40 worker:13 sequence:10 unit:1ms epoch:2011-08-24T21:07:01.721Z":                  keygen.Instagram(),
		"time:41 worker:5 sequence:7 unit:1ms epoch:2024-01-01T00:00:00Z":                        keygen.JSSafe(),
		"time:29 worker:21 sequence:13 unit:1s epoch:2026-01-01T00:00:00Z":                       keygen.Disposable(),
		"time:41 sequence:12 unit:1.5ms epoch:2026-01-01T00:00:00.0000015Z":                      {Epoch: epoch, Unit: 1500 * time.Microsecond, Fields: f(t0, 41, seq, 12)},
		"time:30 worker:9 sequence:12 bucket:10 unit:1m0s epoch:2026-01-01T00:00:00.0000015Z":    {Epoch: epoch, Unit: time.Minute, Fields: f(t0, 30, dc, 4, worker, 5, seq, 12, bucket, 10)},
		"time:30 worker:5 datacenter:4 sequence:12 unit:1m0s epoch:2026-01-01T00:00:00.0000015Z": {Epoch: epoch, Unit: time.Minute, Fields: f(t0, 30, worker, 5, dc, 4, seq, 12)},
		"datacenter:4 time:30 worker:5 sequence:12 unit:1m0s epoch:2026-01-01T00:00:00.0000015Z": {Epoch: epoch, Unit: time.Minute, Fields: f(dc, 4, t0, 30, worker, 5, seq, 12)},
		"time:30 worker:4 sequence:12 unit:1.000000001s epoch:2026-01-01T00:00:00.0000015Z":      {Epoch: epoch, Unit: time.Second + 1, Fields: f(t0, 30, dc, 4, seq, 12)},
	} {
		if got := l.Fingerprint(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestLayoutsOfOneFingerprintMakeTheSameIDs(t *testing.T) {
	split, whole := keygen.Twitter(), keygen.Twitter()
	whole.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 10}, {Kind: keygen.Sequence, Bits: 12}}
	whole.Epoch = whole.Epoch.In(time.FixedZone("", 3600))
	if split.Fingerprint() != whole.Fingerprint() {
		t.Fatalf("%s and %s", split.Fingerprint(), whole.Fingerprint())
	}
	for worker := range int64(1 << 10) {
		var ids [2]int64
		for i, l := range []keygen.Layout{split, whole} {
			p := keygen.Parts{Time: l.At(1234567), Sequence: worker * 3}
			l.SplitWorker(&p, worker)
			var err error
			if ids[i], err = l.Compose(p); err != nil {
				t.Fatal(err)
			}
		}
		if ids[0] != ids[1] {
			t.Fatalf("worker id %d: %d and %d", worker, ids[0], ids[1])
		}
	}
}

// ids returns all ids of a small layout in a tick.
func ids(l keygen.Layout, tick int64) map[int64]bool {
	all := map[int64]bool{}
	below := l.Shift(keygen.Time)
	for rest := range int64(1) << below {
		all[tick<<below|rest] = true
	}
	return all
}

// tiny is a layout with time on top of up to five bits.
func tiny(r *rand.Rand, epoch time.Time) keygen.Layout {
	return keygen.Layout{
		Epoch: epoch.Add(-time.Duration(r.IntN(40)) * time.Second), Unit: time.Duration(1+r.IntN(3)) * time.Second,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 5 + r.IntN(3)}, {Kind: keygen.Worker, Bits: 1 + r.IntN(3)}, {Kind: keygen.Sequence, Bits: 1 + r.IntN(2)}},
	}
}

func TestAboveIsTheTimeUpToWhichNoIDOfTheOldLayoutCanComeAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	together := 0
	for range 300 {
		l, old := tiny(r, now), tiny(r, now)
		from := now.Add(time.Duration(r.IntN(10)) * time.Second)
		until, err := l.Above(old, from)
		if err != nil {
			if from.Before(l.Expires()) {
				t.Fatal(err)
			}
			continue
		}
		fresh := map[int64]bool{}
		for tick := l.Tick(from); tick < 1<<l.Bits(keygen.Time); tick++ {
			for id := range ids(l, tick) {
				fresh[id] = true
			}
		}
		for tick := range int64(1) << old.Bits(keygen.Time) {
			for id := range ids(old, tick) {
				if fresh[id] && old.At(tick).Before(until) {
					t.Fatalf("%+v from %v, old %+v until %v: %d came twice", l, from, old, until, id)
				}
			}
		}
		if until.After(from) {
			together++
		}
	}
	if together == 0 {
		t.Error("no two layouts could run together")
	}
}

func TestAboveTellsTheWaysFromOneLayoutToAnother(t *testing.T) {
	old, wide := keygen.Twitter(), keygen.Twitter()
	wide.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 12}, {Kind: keygen.Sequence, Bits: 10}}
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if until, err := wide.Above(old, from); err != nil || !until.Equal(from) {
		t.Errorf("with the same epoch the old one ends at %v, %v", until, err)
	}
	wide.Epoch = wide.Epoch.AddDate(-1, 0, 0)
	if until, err := wide.Above(old, from); err != nil || !until.Equal(from.Add(old.Epoch.Sub(wide.Epoch))) {
		t.Errorf("with an epoch a year earlier the old one ends at %v, %v", until, err)
	}
	wide.Epoch = old.Epoch
	wide.Fields[2].Bits = 8 // time stands two bits lower
	if until, err := wide.Above(old, from); err != nil || until.After(from.AddDate(-10, 0, 0)) {
		t.Errorf("where time stands lower the old one ended at %v, %v", until, err)
	}
	if _, err := wide.Above(old, wide.Epoch.Add(-1)); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("before the epoch: %v", err)
	}
	low := keygen.Layout{Epoch: old.Epoch, Unit: old.Unit, Fields: []keygen.Field{{Kind: keygen.Worker, Bits: 4}, {Kind: keygen.Time, Bits: 41}, {Kind: keygen.Sequence, Bits: 4}}}
	for _, pair := range [][2]keygen.Layout{{low, old}, {old, low}, {{}, old}, {old, {}}} {
		if _, err := pair[0].Above(pair[1], from); !errors.Is(err, keygen.ErrLayout) {
			t.Errorf("%+v above %+v: %v", pair[0], pair[1], err)
		}
	}
}

func TestATimeFieldThatReachesBeyondTheCalendarHasNoEndWithinIt(t *testing.T) {
	l := keygen.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Hour,
		Fields: []keygen.Field{{Kind: keygen.Time, Bits: 60}, {Kind: keygen.Worker, Bits: 1}, {Kind: keygen.Sequence, Bits: 1}},
	}
	last := l.Epoch
	for tick := int64(1); tick < 1<<61; tick *= 2 {
		if at := l.At(tick); at.Before(last) || at.Year() < 0 {
			t.Errorf("tick %d is at %v, after %v", tick, at, last)
		} else {
			last = at
		}
	}
	if end := l.Expires(); end.Year() < 1_000_000_000 {
		t.Errorf("it expires in %d", end.Year())
	}
}
