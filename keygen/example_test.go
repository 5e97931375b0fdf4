// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/segment"
)

// This is a secret of the service, the same in all of its processes.
const secret = "8f3c5b0a7d1e49c26a90b7e4d2f81357"

// Public ids show the kind of object, and not how many there are.
func ExampleNewFormat() {
	key, err := hex.DecodeString(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	scrambler, err := keygen.NewScrambler([16]byte(key), 63)
	if err != nil {
		fmt.Println(err)
		return
	}
	orders, err := keygen.NewFormat(keygen.FormatConfig{Prefix: "ord_", Encoding: keygen.Base58, Scrambler: scrambler})
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := int64(1001); id <= 1003; id++ { // as the database has them
		text, err := orders.Text(id)
		if err != nil {
			fmt.Println(err)
			return
		}
		back, err := orders.Parse(text)
		fmt.Println(text, back, err)
	}
	_, err = orders.Parse("usr_8kA6hZdpJ9m")
	fmt.Println(err)
	// Output:
	// ord_8kA6hZdpJ9m 1001 <nil>
	// ord_7ucossT2fVZ 1002 <nil>
	// ord_DRzwsJ7N8z 1003 <nil>
	// keygen: not an id: "usr_8kA6hZdpJ9m" does not begin with "ord_"
}

// Texts of one width sort like their ids, in a CHAR column too.
func ExampleFormat_Generator() {
	format, err := keygen.NewFormat(keygen.FormatConfig{Prefix: "INV-", Encoding: keygen.Crockford, Width: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	invoices := format.Generator(keygen.Counting(30, 1)) // any generator of numbers
	for range 3 {
		text, err := invoices.Next(context.Background())
		fmt.Println(text, err)
	}
	// Output:
	// INV-0000000Y <nil>
	// INV-0000000Z <nil>
	// INV-00000010 <nil>
}

// With 53 bits a public id is exact in JavaScript.
func ExampleNewScrambler() {
	key, err := hex.DecodeString(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	scrambler, err := keygen.NewScrambler([16]byte(key), 53)
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := int64(1); id <= 3; id++ {
		public, err := scrambler.Scramble(id)
		if err != nil {
			fmt.Println(err)
			return
		}
		back, err := scrambler.Unscramble(public)
		fmt.Println(public, back, err)
	}
	// Output:
	// 1929174879595875 1 <nil>
	// 4557766612231267 2 <nil>
	// 6304463959460389 3 <nil>
}

func ExampleEncoding() {
	const id = 3200169789968523265
	for _, e := range []*keygen.Encoding{keygen.Base36, keygen.Base58, keygen.Base62, keygen.Base64, keygen.Crockford} {
		text := e.Encode(id)
		back, err := e.Decode(text)
		fmt.Println(text, back == id, err)
	}
	_, err := keygen.Base62.Decode("zzzzzzzzzzz")
	fmt.Println(err)
	// Output:
	// oba5ii0zthc1 true <nil>
	// 8Rr1erKuNgQ true <nil>
	// 3oOoJkTjdb7 true <nil>
	// 2meINW00f01 true <nil>
	// 2RTA9F0005801 true <nil>
	// keygen: not an id: "zzzzzzzzzzz" is above the largest id, 9223372036854775807
}

// A service that no longer uses bwmarrin/snowflake still reads the texts that it gave out.
func Example_bwmarrin() {
	for text, e := range map[string]*keygen.Encoding{
		"4zzv4rZaYpj": keygen.BwmarrinBase58, "bk3pbd7tbxeyy": keygen.BwmarrinBase32, "bppc0m3ju134": keygen.Base36,
	} {
		id, err := e.Decode(text)
		fmt.Println(id, err)
	}
	id, err := keygen.DecodeBwmarrinBase64("MTU0MTgxNTYwMzYwNjAzNjQ4MA==")
	fmt.Println(id, err)
	// Output:
	// 1541815603606036480 <nil>
	// 1541815603606036480 <nil>
	// 1541815603606036480 <nil>
	// 1541815603606036480 <nil>
}

// An id is a string in JSON, and is read from numbers too.
func ExampleID() {
	type Order struct {
		ID keygen.ID `json:"id"`
	}
	text, err := json.Marshal(Order{ID: 3200169789968523265})
	fmt.Println(string(text), err)
	var order Order
	err = json.Unmarshal([]byte(`{"id": 3200169789968523265}`), &order)
	fmt.Println(order.ID, err)
	// Output:
	// {"id":"3200169789968523265"} <nil>
	// 3200169789968523265 <nil>
}

// Ids of JSSafe are exact in every JavaScript number.
func ExampleJSSafe() {
	layout := keygen.JSSafe()
	last, err := layout.Compose(keygen.Parts{Time: layout.Expires().Add(-layout.Unit), Worker: 31, Sequence: 127})
	fmt.Println(last, int64(float64(last)) == last, err)
	// Output: 9007199254740991 true <nil>
}

// Map makes a generator of one kind of keys from one of another.
// Ids that end with the slot of their rows: eight shards, 512 ids for each of them in a
// millisecond.
func ExampleLayout_WithBucket() {
	layout := keygen.Twitter().WithBucket(3)
	fmt.Println(layout.Validate(), layout.Bits(keygen.Sequence), layout.Bits(keygen.Bucket))
	id, err := layout.Compose(keygen.Parts{Time: layout.Epoch.AddDate(16, 0, 0), Worker: 1, Sequence: 7, Bucket: 5})
	fmt.Println(id%8, err)
	// Output:
	// <nil> 9 3
	// 5 <nil>
}

func ExampleMap() {
	numbers := keygen.Counting(7, 1) // any generator of numbers
	files := keygen.Map(numbers, func(id int64) (string, error) {
		return fmt.Sprintf("%s.jpg", keygen.ID(id)), nil
	})
	name, err := files.Next(context.Background())
	fmt.Println(name, err)
	// Output: 7.jpg <nil>
}

// This layout with more worker bits replaces another one. With the same epoch, all
// processes with the old layout must have ended before. With an epoch a year earlier, both
// run side by side for a year.
func ExampleLayout_Above() {
	old := keygen.Twitter()
	wide := old
	wide.Fields = []keygen.Field{{Kind: keygen.Time, Bits: 41}, {Kind: keygen.Worker, Bits: 12}, {Kind: keygen.Sequence, Bits: 10}}

	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	fmt.Println(wide.Above(old, from))

	wide.Epoch = wide.Epoch.AddDate(-1, 0, 0)
	fmt.Println(wide.Above(old, from))
	// Output:
	// 2026-03-01 00:00:00 +0000 UTC <nil>
	// 2027-03-01 00:00:00 +0000 UTC <nil>
}

// These texts of ids are for people who read logs: the time, the worker and the sequence.
func ExampleNewFriendly() {
	form, err := keygen.NewFriendly(keygen.FriendlyConfig{Layout: keygen.CosID(), Zone: time.FixedZone("CST", 8*60*60)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(form.Text(295913926632165376))
	fmt.Println(form.Parse("20220320133617924-5-0"))
	// Output:
	// 20220320133617924-5-0 <nil>
	// 295913926632165376 <nil>
}

// sectionNumbers are the high bits, as a redisgen.Counter or sqlstore's WUID gives them.
type sectionNumbers struct{ last int64 }

func (h *sectionNumbers) Reserve(_ context.Context, n int64) (keygen.Span, error) {
	h.last += n
	return keygen.Span{First: h.last - n + 1, Count: n, Step: 1}, nil
}

// The numbers are wuid's: each round trip is for 2^36 of them.
func ExampleSections() {
	ctx := context.Background()
	sections, err := keygen.Sections(&sectionNumbers{}, 36)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids, err := segment.New(ctx, segment.Config{Source: sections})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = ids.Close() }()
	for range 2 {
		fmt.Println(ids.Next(ctx))
	}
	// Output:
	// 68719476736 <nil>
	// 68719476737 <nil>
}

// Keys in blocks of 256 for each core. They are unique, and do not rise.
func ExampleStriped() {
	ctx := context.Background()
	ids, err := keygen.Striped(keygen.Counting(1, 1), 256) // of package segment, in an application
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := map[int64]bool{}
	for range 1000 {
		id, err := ids.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		seen[id] = true
	}
	fmt.Println(len(seen))
	// Output: 1000
}

// Keys for several rows at once, from whatever generator.
func ExampleFill() {
	ids := make([]int64, 3)
	err := keygen.Fill(context.Background(), keygen.Counting(101, 1), ids)
	fmt.Println(ids, err)
	// Output: [101 102 103] <nil>
}

// This lists the layouts that can parse an id, by the names that shardid decode knows.
func ExamplePresets() {
	presets := keygen.Presets()
	for _, name := range slices.Sorted(maps.Keys(presets)) {
		layout := presets[name]
		fmt.Println(name, layout.Bits(keygen.Time), layout.WorkerBits(), layout.Bits(keygen.Sequence), layout.Unit)
	}
	parts, err := presets["cosid"].Parse(295913926632165376)
	fmt.Println(parts.Time, parts.Worker, parts.Sequence, err)
	// Output:
	// baidu 28 22 13 1s
	// cosid 41 10 12 1ms
	// cosid-second 31 10 22 1s
	// disposable 29 21 13 1s
	// instagram 40 13 10 1ms
	// jssafe 41 5 7 1ms
	// sonyflake 39 16 8 10ms
	// sonyflake2 39 16 8 10ms
	// twitter 41 10 12 1ms
	// yitter 51 6 6 1ms
	// 2022-03-20 05:36:17.924 +0000 UTC 5 0 <nil>
}

// An id in a URL has exactly one text, so that two texts never mean the same row.
func ExampleParseID() {
	for _, text := range []string{"3200169789968523265", "007", "+7", "9223372036854775808"} {
		id, err := keygen.ParseID(text)
		fmt.Println(id, err, errors.Is(err, keygen.ErrSyntax))
	}
	// Output:
	// 3200169789968523265 <nil> false
	// 0 keygen: not an id: "007" has a leading zero true
	// 0 keygen: not an id: '+' is not a decimal digit, at byte 0 of "+7" true
	// 0 keygen: not an id: "9223372036854775808" is above the largest id, 9223372036854775807 true
}

// Eight bytes of an id, for a key of a key-value store: they sort like ids.
func ExampleIDFromBytes() {
	b := keygen.ID(3200169789968523265).Bytes()
	fmt.Printf("%x\n", b)
	id, err := keygen.IDFromBytes(b)
	fmt.Println(id, err)
	_, err = keygen.IDFromBytes([8]byte{0xff})
	fmt.Println(err)
	// Output:
	// 2c6949780002a001
	// 3200169789968523265 <nil>
	// keygen: not an id: bytes ff00000000000000 are a negative number
}

// The texts of bwmarrin/snowflake's Base64, for clients that have kept them.
func ExampleEncodeBwmarrinBase64() {
	text := keygen.EncodeBwmarrinBase64(1541815603606036480)
	fmt.Println(text)
	fmt.Println(keygen.DecodeBwmarrinBase64(text))
	// Output:
	// MTU0MTgxNTYwMzYwNjAzNjQ4MA==
	// 1541815603606036480 <nil>
}

// This prints, for layouts of other systems, how many processes can make ids of each at
// once.
func ExampleTwitter() {
	for _, l := range []keygen.Layout{
		keygen.Twitter(), keygen.Baidu(), keygen.CosID(), keygen.CosIDSecond(), keygen.Disposable(),
		keygen.Instagram(), keygen.Sonyflake(), keygen.SonyflakeV2(), keygen.Yitter(),
	} {
		fmt.Print(1<<l.WorkerBits(), " ")
	}
	// Output: 1024 4194304 1024 1024 2097152 8192 65536 65536 64
}
