// SPDX-License-Identifier: Apache-2.0

package keygen_test

import (
	"encoding/json"
	"strconv"
	"sync"
	"testing"
	"time"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"
	sonyflake2 "github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/keygentest"
	"github.com/shardid/shardid/keygen/snowflake"
	"github.com/shardid/shardid/keygen/workerid"
)

// beside runs a generator of ours with the worker id beside another one and
// returns what each issued.
func beside(t *testing.T, l keygen.Layout, worker int64, count int, other func() (int64, error)) (ours, theirs []int64) {
	t.Helper()
	g, err := snowflake.New(t.Context(), snowflake.Config{Layout: l, Worker: workerid.Static(worker)})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range count {
			id, err := other()
			if err != nil {
				t.Error(err)
				return
			}
			theirs = append(theirs, id)
		}
	})
	ours = someIDs(t, g, count)
	wg.Wait()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if id, twice := keygentest.Duplicate(append(append([]int64{}, ours...), theirs...)); twice || len(theirs) != count {
		t.Errorf("%d came twice, of %d and %d", id, len(ours), len(theirs))
	}
	return ours, theirs
}

// parsed takes an id apart and puts it together again.
func parsed(t *testing.T, l keygen.Layout, id int64) keygen.Parts {
	t.Helper()
	parts, err := l.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := l.Compose(parts); err != nil || back != id {
		t.Fatalf("%d came back as %d, %v", id, back, err)
	}
	return parts
}

func TestIDsOfBwmarrinsAndOursAreReadByEachOther(t *testing.T) {
	const ourNode, theirNode = 777, 38
	node, err := bwmarrin.NewNode(theirNode)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-time.Second)
	ours, theirs := beside(t, keygen.Twitter(), ourNode, 20_000, func() (int64, error) { return node.Generate().Int64(), nil })
	end := time.Now().Add(time.Hour) // 20,000 ids take five milliseconds at least, and a busy machine's time
	for want, ids := range map[int64][]int64{ourNode: ours, theirNode: theirs} {
		for _, id := range ids {
			here, there := parsed(t, keygen.Twitter(), id), bwmarrin.ParseInt64(id)
			if worker := here.Datacenter<<5 | here.Worker; worker != want || there.Node() != want {
				t.Fatalf("%d: worker id %d here, %d there, want %d", id, worker, there.Node(), want)
			}
			if here.Time.UnixMilli() != there.Time() || here.Sequence != there.Step() {
				t.Fatalf("%d: %+v here, time %d and step %d there", id, here, there.Time(), there.Step())
			}
			if here.Time.Before(begin) || here.Time.After(end) {
				t.Fatalf("%d is of %v", id, here.Time)
			}
		}
	}
}

func TestTextsOfBwmarrinsAndOursAreReadByEachOther(t *testing.T) {
	node, err := bwmarrin.NewNode(5)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := beside(t, keygen.Twitter(), 6, 1000, func() (int64, error) { return node.Generate().Int64(), nil })
	for _, id := range append(ours, theirs...) {
		there := bwmarrin.ParseInt64(id)
		for text, e := range map[string]*keygen.Encoding{
			there.Base2(): keygen.Base2, there.Base32(): keygen.BwmarrinBase32, there.Base36(): keygen.Base36, there.Base58(): keygen.BwmarrinBase58,
			there.String(): keygen.Decimal,
		} {
			if got, err := e.Decode(text); err != nil || got != id || e.Encode(id) != text {
				t.Fatalf("%d is %s there and %s here, read as %d, %v", id, text, e.Encode(id), got, err)
			}
		}
		if got, err := keygen.DecodeBwmarrinBase64(there.Base64()); err != nil || got != id {
			t.Fatalf("%d: %d, %v", id, got, err)
		}
		if there.IntBytes() != keygen.ID(id).Bytes() {
			t.Fatalf("%d: %x there, %x here", id, there.IntBytes(), keygen.ID(id).Bytes())
		}
		jsonIsReadByEachOther(t, id)
	}
}

func jsonIsReadByEachOther(t *testing.T, id int64) {
	t.Helper()
	there, err := json.Marshal(bwmarrin.ParseInt64(id))
	if err != nil {
		t.Fatal(err)
	}
	here, err := json.Marshal(keygen.ID(id))
	if err != nil {
		t.Fatal(err)
	}
	var mine keygen.ID
	var theirs bwmarrin.ID
	if err := json.Unmarshal(there, &mine); err != nil || mine != keygen.ID(id) {
		t.Fatalf("%s was read as %d, %v", there, mine, err)
	}
	if err := json.Unmarshal(here, &theirs); err != nil || theirs.Int64() != id || string(here) != strconv.Quote(theirs.String()) {
		t.Fatalf("%s was read as %d, %v", here, theirs, err)
	}
}

func TestIDsOfSonyflakeAndOursAreReadByEachOther(t *testing.T) {
	const ourMachine, theirMachine = 40_001, 515
	peer, err := sonyflake.New(sonyflake.Settings{MachineID: func() (uint16, error) { return theirMachine, nil }})
	if err != nil {
		t.Fatal(err)
	}
	epoch := keygen.Sonyflake().Epoch
	begin := time.Now().Add(-time.Second)
	ours, theirs := beside(t, keygen.Sonyflake(), ourMachine, 2000, func() (int64, error) {
		id, err := peer.NextID()
		return int64(id), err
	})
	end := time.Now().Add(time.Hour)
	for want, ids := range map[int64][]int64{ourMachine: ours, theirMachine: theirs} {
		for _, id := range ids {
			here := parsed(t, keygen.Sonyflake(), id)
			if here.Worker != want || sonyflake.MachineID(uint64(id)) != uint64(want) {
				t.Fatalf("%d: machine %d here, %d there, want %d", id, here.Worker, sonyflake.MachineID(uint64(id)), want)
			}
			if uint64(here.Sequence) != sonyflake.SequenceNumber(uint64(id)) || here.Time.Sub(epoch) != sonyflake.ElapsedTime(uint64(id)) {
				t.Fatalf("%d: %+v here, sequence %d and time %v there", id, here, sonyflake.SequenceNumber(uint64(id)), sonyflake.ElapsedTime(uint64(id)))
			}
			if here.Time.Before(begin) || here.Time.After(end) {
				t.Fatalf("%d is of %v", id, here.Time)
			}
		}
	}
}

func TestIDsOfSonyflakeV2AndOursAreReadByEachOther(t *testing.T) {
	const ourMachine, theirMachine = 40_001, 515
	peer, err := sonyflake2.New(sonyflake2.Settings{MachineID: func() (int, error) { return theirMachine, nil }})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-time.Second)
	ours, theirs := beside(t, keygen.SonyflakeV2(), ourMachine, 2000, peer.NextID)
	end := time.Now().Add(time.Hour)
	for want, ids := range map[int64][]int64{ourMachine: ours, theirMachine: theirs} {
		for _, id := range ids {
			here, there := parsed(t, keygen.SonyflakeV2(), id), peer.Decompose(id)
			if here.Worker != want || there["machine"] != want || here.Sequence != there["sequence"] || !here.Time.Equal(peer.ToTime(id)) {
				t.Fatalf("%d: %+v here, %v at %v there, want machine %d", id, here, there, peer.ToTime(id), want)
			}
			if here.Time.Before(begin) || here.Time.After(end) {
				t.Fatalf("%d is of %v", id, here.Time)
			}
			composed, err := peer.Compose(here.Time, int(here.Sequence), int(here.Worker))
			if err != nil || composed != id {
				t.Fatalf("%+v is %d there, %v; %d here", here, composed, err, id)
			}
		}
	}
}

func TestIDsOfYitterAndOursAreReadByEachOther(t *testing.T) {
	const ourWorker, theirWorker = 63, 5
	peer := idgen.NewDefaultIdGenerator(idgen.NewIdGeneratorOptions(theirWorker))
	begin := time.Now().Add(-time.Second)
	ours, theirs := beside(t, keygen.Yitter(), ourWorker, 20_000, func() (int64, error) { return peer.NewLong(), nil })
	end := time.Now().Add(time.Hour)
	for want, ids := range map[int64][]int64{ourWorker: ours, theirWorker: theirs} {
		for _, id := range ids {
			here, there := parsed(t, keygen.Yitter(), id), peer.ExtractTime(id)
			if here.Worker != want || !here.Time.Equal(there) {
				t.Fatalf("%d: %+v here, of %v there, want worker %d", id, here, there, want)
			}
			if want == theirWorker && here.Sequence < 5 || here.Time.Before(begin) || here.Time.After(end) {
				t.Fatalf("%d: %+v", id, here)
			}
		}
	}
}
