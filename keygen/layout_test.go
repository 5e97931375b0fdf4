package keygen_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
)

// The vectors are fixed: ids that are stored in databases have to mean the same
// for ever.
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
