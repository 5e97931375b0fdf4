// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardid/shardid/keygen"
)

func friendly(t *testing.T, cfg keygen.FriendlyConfig) *keygen.Friendly {
	t.Helper()
	f, err := keygen.NewFriendly(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The texts are what the published source of CosId makes, run on Java 17 in both zones:
// SnowflakeIdStateParser with its two subclasses (commit 17a83d1 of Ahoo-Wang/CosId) and
// Radix62IdConverter (52684d9), with the epoch and bits of CosId and its SnowflakeIds. The
// first one stands in CosId's own tests.
func TestTextsAreCosIDs(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	padded, err := keygen.NewFormat(keygen.FormatConfig{Encoding: keygen.Base62, Width: 11})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		layout     keygen.Layout
		id         int64
		here, utc  string
		radix, pad string
	}{
		{keygen.CosID(), 295913926632165376, "20220320133617924-5-0", "20220320053617924-5-0", "LrHucXALbs", "0LrHucXALbs"},
		{keygen.CosID(), 1, "20191225000000000-0-1", "20191224160000000-0-1", "1", "00000000001"},
		{keygen.CosID(), 4194303, "20191225000000000-1023-4095", "20191224160000000-1023-4095", "Hb83", "0000000Hb83"},
		{keygen.CosID(), math.MaxInt64, "20890830154735551-1023-4095", "20890830074735551-1023-4095", "AzL8n0Y58m7", "AzL8n0Y58m7"},
		{keygen.CosID(), 782516197785753600, "20251122080000000-37-2048", "20251122000000000-37-2048", "vnvoTwOa4u", "0vnvoTwOa4u"},
		{keygen.CosIDSecond(), 801296590730952703, "20251122080000-1000-4194303", "20251122000000-1000-4194303", "", ""},
		{keygen.CosIDSecond(), 4294967297, "20191225000001-0-1", "20191224160001-0-1", "", ""},
		{keygen.CosIDSecond(), math.MaxInt64, "20880112031407-1023-4194303", "20880111191407-1023-4194303", "", ""},
	} {
		for want, f := range map[string]*keygen.Friendly{
			v.here: friendly(t, keygen.FriendlyConfig{Layout: v.layout, Zone: shanghai}),
			v.utc:  friendly(t, keygen.FriendlyConfig{Layout: v.layout}),
		} {
			if text, err := f.Text(v.id); err != nil || text != want {
				t.Errorf("%d is %s, %v; want %s", v.id, text, err, want)
			}
			if id, err := f.Parse(want); err != nil || id != v.id {
				t.Errorf("%s is %d, %v; want %d", want, id, err, v.id)
			}
		}
		if v.radix == "" {
			continue
		}
		if text := keygen.Base62.Encode(v.id); text != v.radix {
			t.Errorf("%d is %s in radix 62, want %s", v.id, text, v.radix)
		}
		if text, err := padded.Text(v.id); err != nil || text != v.pad {
			t.Errorf("%d is %s with zeros, %v; want %s", v.id, text, err, v.pad)
		}
	}
}

// CosId's PrefixIdConverter and SuffixIdConverter.
func TestPrefixAndSuffixAreCosIDs(t *testing.T) {
	f, err := keygen.NewFormat(keygen.FormatConfig{Prefix: "order_", Suffix: "_eu", Encoding: keygen.Base62})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Text(4194303); err != nil || text != "order_Hb83_eu" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestFriendlyTextsComeBackAsTheirIDs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for name, l := range keygen.Presets() {
		for _, cfg := range []keygen.FriendlyConfig{{Layout: l}, {Layout: l, Pad: true}, {Layout: l, Zone: time.FixedZone("", -9000)}} {
			if name == "yitter" {
				cfg.Zone = nil // it lasts beyond the year 9999
			}
			f := friendly(t, cfg)
			var ids []int64
			for range 300 {
				id := r.Int64()
				if name == "jssafe" {
					id &= 1<<53 - 1
				}
				if name == "yitter" {
					id &= 1<<59 - 1
				}
				ids = append(ids, max(id, 1))
			}
			slices.Sort(ids)
			last := ""
			for _, id := range ids {
				text, err := f.Text(id)
				if err != nil {
					t.Fatalf("%s %d: %v", name, id, err)
				}
				if back, err := f.Parse(text); err != nil || back != id {
					t.Fatalf("%s: %s is %d, %v; want %d", name, text, back, err, id)
				}
				if cfg.Pad && l.Bits(keygen.Worker) > 0 && l.Fields[len(l.Fields)-1].Kind == keygen.Sequence && text <= last {
					t.Fatalf("%s: %s after %s", name, text, last)
				}
				last = text
			}
		}
	}
}

func TestTextsThatFriendlyNeverWritesAreRefused(t *testing.T) {
	f := friendly(t, keygen.FriendlyConfig{Layout: keygen.CosID()})
	for _, text := range []string{
		"", "20220320053617924", "20220320053617924-5", "20220320053617924-5-0-0", "2022032005361792-5-0", "20221320053617924-5-0",
		"20220320053617924-05-0", "20220320053617924-5-00", "20220320053617924--5-0", "20220320053617924-+5-0", " 20220320053617924-5-0",
		"20191224155959999-5-0", "99991231235959999-5-0", "20220320053617924-1024-0", "20220320053617924-5-4096", "20220320053617924-5-x",
		"20220320053660924-5-0", "20191224160000000-0-0", "2022032005361792４-5-0",
	} {
		if id, err := f.Parse(text); !errors.Is(err, keygen.ErrSyntax) {
			t.Errorf("%q is %d, %v", text, id, err)
		}
	}
}

func TestIDsWithoutAFriendlyTextAreRefused(t *testing.T) {
	f := friendly(t, keygen.FriendlyConfig{Layout: keygen.Yitter()})
	for id, want := range map[int64]error{0: keygen.ErrRange, -1: keygen.ErrRange, math.MaxInt64: keygen.ErrRange} {
		if text, err := f.Text(id); !errors.Is(err, want) {
			t.Errorf("%d is %s, %v", id, text, err)
		}
	}
	if text, err := friendly(t, keygen.FriendlyConfig{Layout: keygen.JSSafe()}).Text(1 << 53); !errors.Is(err, keygen.ErrLayout) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestALayoutOrZoneWhoseTextsWouldNotBeDistinctIsRefused(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	fine, bucket, off := keygen.Twitter(), keygen.Twitter(), keygen.Twitter()
	fine.Unit = 1500 * time.Microsecond
	off.Epoch = off.Epoch.Add(time.Microsecond)
	bucket.Fields = append(slices.Clone(bucket.Fields[:3]), keygen.Field{Kind: keygen.Sequence, Bits: 8}, keygen.Field{Kind: keygen.Bucket, Bits: 4})
	for want, cfg := range map[string]keygen.FriendlyConfig{
		"an hour": {Layout: keygen.CosID(), Zone: berlin}, "Layout: ": {}, "milliseconds": {Layout: fine}, "2010-11-04 01:42:54.657001": {Layout: off}, "bucket": {Layout: bucket},
	} {
		if f, err := keygen.NewFriendly(cfg); err == nil || f != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one about %s", err, want)
		}
	}
	var none *keygen.Friendly
	if _, err := none.Text(1); !errors.Is(err, keygen.ErrLayout) {
		t.Error(err)
	}
	if _, err := new(keygen.Friendly).Parse("1"); !errors.Is(err, keygen.ErrLayout) {
		t.Error(err)
	}
}

func TestALayoutThatIsChangedLaterChangesNoText(t *testing.T) {
	l := keygen.CosID()
	f := friendly(t, keygen.FriendlyConfig{Layout: l})
	l.Fields[2].Bits = 3
	if text, err := f.Text(295913926632165376); err != nil || text != "20220320053617924-5-0" {
		t.Errorf("%s, %v", text, err)
	}
}
