// SPDX-License-Identifier: Apache-2.0

package workerid_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

func acquire(t *testing.T, a keygen.Assigner, l keygen.Layout) (int64, error) {
	t.Helper()
	lease, err := a.Acquire(t.Context(), l)
	if err != nil {
		if !errors.Is(err, keygen.ErrNoWorker) {
			t.Errorf("%v does not wrap ErrNoWorker", err)
		}
		return -1, err
	}
	if lease.NotBefore() != keygen.UnknownHistory {
		t.Error("a number knows of former holders")
	}
	return lease.ID(), nil
}

func TestEnvGivesTheNumberAndNeverGuesses(t *testing.T) {
	t.Setenv("POD_INDEX", "7")
	if id, err := acquire(t, workerid.Env("POD_INDEX"), keygen.Twitter()); id != 7 {
		t.Errorf("%d, %v", id, err)
	}
	for _, text := range []string{"", "x", "1024", "-1", "7 "} {
		t.Setenv("POD_INDEX", text)
		if id, err := acquire(t, workerid.Env("POD_INDEX"), keygen.Twitter()); err == nil {
			t.Errorf("%q gave %d", text, id)
		}
	}
	if _, err := acquire(t, workerid.Env("SHARDID_NO_SUCH_VARIABLE"), keygen.Twitter()); err == nil || !strings.Contains(err.Error(), "is not set") {
		t.Errorf("%v", err)
	}
}

func TestOrdinalIsTheNumberAtTheEndOfTheHostName(t *testing.T) {
	for name, want := range map[string]int64{"orders-3": 3, "orders-0.svc.cluster.local": 0, "a-b-12": 12} {
		if id, err := workerid.OrdinalOf(name); err != nil || id != want {
			t.Errorf("%s: %d, %v", name, id, err)
		}
	}
	for _, name := range []string{"orders", "orders-", "orders-x", "12", "", "orders--1x", "orders-99999999999999999999"} {
		if id, err := workerid.OrdinalOf(name); err == nil {
			t.Errorf("%q gave %d", name, id)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want, wantErr := workerid.OrdinalOf(host)
	if id, err := acquire(t, workerid.Ordinal(), keygen.Sonyflake()); (err == nil) != (wantErr == nil) || err == nil && id != want {
		t.Errorf("%s: %d, %v", host, id, err)
	}
}

// addrs are the addresses of a machine.
func addrs(t *testing.T, texts ...string) func() ([]net.Addr, error) {
	t.Helper()
	var all []net.Addr
	for _, text := range texts {
		ip, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &net.IPNet{IP: ip, Mask: network.Mask})
	}
	return func() ([]net.Addr, error) { return all, nil }
}

func TestPrivateIPGivesItsLower16Bits(t *testing.T) {
	own := addrs(t, "127.0.0.1/8", "8.8.8.8/24", "10.1.2.3/8", "192.168.0.9/16", "fd00::1/64")
	ask := func(addr string, l keygen.Layout) (int64, error) {
		return acquire(t, workerid.PrivateIPOf(netip.MustParseAddr(addr), own), l)
	}
	for addr, want := range map[string]int64{"10.1.2.3": 2<<8 | 3, "::ffff:192.168.0.9": 9} {
		if id, err := ask(addr, keygen.Sonyflake()); id != want || err != nil {
			t.Errorf("%s: %d, %v", addr, id, err)
		}
	}
	for _, addr := range []string{"8.8.8.8", "127.0.0.1", "fd00::1"} {
		if id, err := ask(addr, keygen.Sonyflake()); err == nil {
			t.Errorf("%s gave %d", addr, id)
		}
	}
	if id, err := ask("10.1.2.3", keygen.Twitter()); err == nil {
		t.Errorf("ten worker bits took %d", id)
	}
}

func TestPrivateIPOfAnotherMachineIsRefused(t *testing.T) {
	addr := netip.MustParseAddr("10.1.2.4")
	for name, assigner := range map[string]keygen.Assigner{
		"a neighbour's": workerid.PrivateIPOf(addr, addrs(t, "10.1.2.3/8")),
		"unknown":       workerid.PrivateIPOf(addr, func() ([]net.Addr, error) { return nil, errors.New("cannot say") }),
	} {
		if id, err := acquire(t, assigner, keygen.Sonyflake()); !errors.Is(err, keygen.ErrNoWorker) {
			t.Errorf("%s: %d, %v", name, id, err)
		}
	}
}

func TestPrivateIPAsksThisMachine(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	last := netip.MustParseAddr("10.255.255.254")
	_, err = acquire(t, workerid.PrivateIP(last), keygen.Sonyflake())
	_, want := acquire(t, workerid.PrivateIPOf(last, func() ([]net.Addr, error) { return own, nil }), keygen.Sonyflake())
	if fmt.Sprint(err) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", err, want)
	}
}

func TestBackupGivesEachWorkerIDOnceAndThenTheOneThatRestedLongest(t *testing.T) {
	b := workerid.Backup(7, 519)
	take := func() keygen.Returnable {
		t.Helper()
		lease, err := b.Acquire(t.Context(), keygen.Twitter())
		if err != nil {
			t.Fatal(err)
		}
		return lease.(keygen.Returnable)
	}
	first, second := take(), take()
	if first.ID() != 7 || second.ID() != 519 || second.NotBefore() != keygen.UnknownHistory {
		t.Errorf("%d, %d from %d", first.ID(), second.ID(), second.NotBefore())
	}
	if _, err := b.Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, keygen.ErrNoWorker) {
		t.Errorf("a third: %v", err)
	}
	for _, end := range []int64{2000, 3000} { // the second call changes nothing
		if err := first.Release(t.Context(), end); err != nil {
			t.Error(err)
		}
	}
	if err := second.Release(t.Context(), 1000); err != nil {
		t.Error(err)
	}
	for _, want := range []struct{ id, end int64 }{{519, 1000}, {7, 2000}} {
		if again := take(); again.ID() != want.id || again.NotBefore() != want.end {
			t.Errorf("%d from %d, want %+v", again.ID(), again.NotBefore(), want)
		}
	}
	if _, err := workerid.Backup(5000).Acquire(t.Context(), keygen.Twitter()); !errors.Is(err, keygen.ErrNoWorker) {
		t.Errorf("too large: %v", err)
	}
}
